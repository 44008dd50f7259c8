// Package meta is the lowest layer of Parquet: the Thrift structures of footer, page headers and indexes, read within
// limits; the schema tree; encryption, keys, compression and the blocks of Bloom filters. It has plain functions on
// bytes, whose errors say where in the file they occurred.
package meta
