package parquet

import "stoa/region"

// codes are the kinds of findings, by name.
var codes = []region.CodeDoc{
	{Code: "parquet.footer", Severity: region.Error, Help: "The footer cannot be read, so nothing of the file can."},
	{Code: "parquet.page", Severity: region.Error, Help: "A page, or its header, cannot be read."},
	{Code: "parquet.page.checksum", Severity: region.Error, Help: "The checksum of a page does not fit its bytes."},
	{Code: "parquet.column", Severity: region.Error, Help: "A column of a row group cannot be read; the rows of the group are lost in that column."},
	{Code: "parquet.layout", Severity: region.Note, Help: "Bytes that nothing in the file points to. Some writers leave such bytes; no rows are lost by them."},
	{Code: "parquet.unreadable", Severity: region.Error, Help: "Bytes could not be read from where the file is kept, or need something that is not known here; the message names it."},
}
