// Package schema derives an Arrow schema from the columns of a file: from the file's Avro schema, from the schema that
// our writer stores, from the names and levels of the columns, or from each column separately. It reads no blocks.
package schema
