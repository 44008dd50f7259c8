// Package parquet reads, verifies, recovers and writes Parquet (format name "parquet").
//
//	file   ::= "PAR1" · column chunks … · page indexes and bloom filters ·
//	           footer (Thrift compact FileMetaData) · footer length (int32) · "PAR1"
//	chunk  ::= dictionary page? · data page*
//	page   ::= header (Thrift compact PageHeader) · body (compressed)
//
// Nothing that a file claims is trusted before it is checked: no list is longer than the bytes that hold it, column
// chunks must lie within the file, schemas and page sizes are bounded by format.Limits, and page checksums are compared
// with the pages.
//
// The implementation is layered, and each package imports only those listed before it: internal/meta (the file's
// structures), internal/page (decoding), internal/order (comparing rows), internal/write, internal/file (an open file),
// internal/read (its pages, for scans), internal/describe, internal/verify, internal/recovery, internal/rewrite
// (copying pages).
//
// Row groups are Parquet's row groups. Only the column chunks of the requested leaves are read. A filter is narrowed by
// statistics, Bloom filters and page indexes; a range of rows skips whole row groups, and single pages if the file has
// an offset index. The Arrow schema stored under ARROW:schema is honoured, so types that Parquet cannot express, and
// field metadata, survive a round trip.
package parquet
