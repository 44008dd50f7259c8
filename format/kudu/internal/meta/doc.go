// Package meta is what Kudu's metadata says: superblocks with their schema, partitions, rowsets and blocks;
// consensus metadata; encoded keys and stored values of a column, and their texts. It parses messages, and reads no
// block.
package meta
