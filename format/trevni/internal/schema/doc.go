// Package schema makes an Arrow schema of the columns of a file: by the file's Avro schema, by the one that our writer
// stores, by the names and levels of the columns, or of each column by itself. It reads no blocks.
package schema
