// Package write writes the dialects of Avro and the wiki: columns of blocks, from Arrow's arrays, through a scratch
// file if they are large.
package write
