// Package meta parses and writes Kudu's metadata: superblocks with their schema, partitions, rowsets and blocks;
// consensus metadata; encoded keys and stored values of a column, and their text forms. It reads no blocks.
package meta
