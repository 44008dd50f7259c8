// Package meta is the lowest floor of Parquet: the Thrift structures of footer, page headers and indexes as they are
// read, with their limits; the tree of a schema; encryption, keys, compression and the blocks of Bloom filters.
// Plain functions on bytes, placed errors.
package meta
