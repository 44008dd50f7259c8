// Package parquet is the adapter over arrow-go's Parquet (format name "parquet").
//
//	file   ::= "PAR1" · column chunks … · page indexes and bloom filters · footer (Thrift compact FileMetaData) ·
//	           footer length (int32) · "PAR1"
//	chunk  ::= dictionary page? · data page*
//	page   ::= header (Thrift compact PageHeader) · body (compressed)
//
// The library decodes values; what it would take on a stranger's word is looked at first: the footer, page
// headers and indexes are parsed by structs.go, page.go and index.go (so that no list is longer than the bytes
// that hold it), column chunks must lie in the file, page sizes are limited by format.Limits, checksums of
// pages are compared. Its panics are caught here and are errors of class Corrupt with the span of the column
// chunks that were read.
//
// Row groups are Parquet's row groups; only the column chunks of wanted leaves are read; a filter narrows by
// statistics and page indexes; a range of rows skips whole row groups, and pages where the file has an offset
// index. The Arrow schema is stored under ARROW:schema and honoured, so that types which Parquet has no word
// for, and field metadata, come back.
package parquet
