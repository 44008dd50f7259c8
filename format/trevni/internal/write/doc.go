// Package write writes Avro's and the wiki's dialects: columns of blocks, from Arrow arrays, through a scratch file if
// they are large.
package write
