// Package schema is how the columns of a file become an Arrow schema: by the Avro schema that it has, by the one that
// our writer keeps, by the names and levels of its columns, or as they are. Nothing is read here.
package schema
