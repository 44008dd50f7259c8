// Package parquet reads, verifies, recovers and writes Parquet (format name "parquet").
//
//	file   ::= "PAR1" · column chunks … · page indexes and bloom filters ·
//	           footer (Thrift compact FileMetaData) · footer length (int32) · "PAR1"
//	chunk  ::= dictionary page? · data page*
//	page   ::= header (Thrift compact PageHeader) · body (compressed)
//
// What a file says is looked at before it is believed: no list is longer than the bytes that hold it, column chunks
// must lie in the file, schemas and page sizes are limited by format.Limits, checksums of pages are compared.
//
// Its floors, each knowing only those before it: internal/meta (structures of the file), internal/page (decoding),
// internal/order (comparing rows), internal/write; and internal/file (an open file), internal/read (its pages, for
// scans), internal/describe, internal/verify, internal/recovery,
// internal/rewrite (copying pages).
//
// Row groups are Parquet's row groups; only the column chunks of wanted leaves are read; a filter narrows by
// statistics and page indexes; a range of rows skips whole row groups, and pages where the file has an offset
// index. The Arrow schema is stored under ARROW:schema and honoured, so that types which Parquet has no word
// for, and field metadata, come back.
package parquet
