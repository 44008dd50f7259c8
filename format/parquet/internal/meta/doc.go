// Package meta is the lowest layer of Parquet: the Thrift structures of footer, page headers and indexes, read within
// limits; the schema tree; encryption, keys, compression and the blocks of Bloom filters. Its functions work on bytes,
// and their errors state the place in the file.
package meta
