package verify

import (
	"stoa/internal/check"
	"stoa/region"
)

// Codes are the kinds of findings that Verify reports.
var Codes = check.Codes{
	{Code: "parquet.bloom", Severity: region.Error, Help: "A Bloom filter lacks a value that is in its column " +
		"chunk, or cannot be read. A reader that uses it misses rows with that value; stoa does not use it."},
	{Code: "parquet.column", Severity: region.Error,
		Help: "A column of a row group cannot be read; the cells of its rows in that column are lost."},
	{Code: "parquet.copy", Severity: region.Warning, Help: "The copy of a column chunk's metadata that some " +
		"writers put after the chunk (file_offset points to it) differs from the footer: one of the two is " +
		"damaged. Readers use the footer."},
	{Code: "parquet.dictionary", Severity: region.Error, Help: "The number of entries in the dictionary of a column " +
		"chunk differs from its header. stoa reads the rows whose entries exist; other readers refuse the chunk."},
	{Code: "parquet.encodings", Severity: region.Warning, Help: "The footer does not list an encoding that a " +
		"page of a column chunk uses, or its encoding_stats do not match the pages. A reader that trusts the " +
		"list, for example to skip chunks that are dictionary-encoded throughout, may miss rows; stoa goes by " +
		"the pages."},
	{Code: "parquet.footer", Severity: region.Error,
		Help: "The footer cannot be read, and without it nothing else can."},
	{Code: "parquet.footer.cut", Severity: region.Warning, Help: "Recover found the beginning of a truncated " +
		"footer: the names and Parquet types of the columns are known, but everything after the row groups is " +
		"lost, including the Arrow schema and other key/value metadata. Types that Parquet cannot express are " +
		"read as the types they are stored as."},
	{Code: "parquet.index", Severity: region.Error, Help: "An offset or column index cannot be read, or does " +
		"not match the pages. A full scan does not need it; seeks and filters do."},
	{Code: "parquet.index.bounds", Severity: region.Error, Help: "A page has a value outside its bounds in the " +
		"column index or the page header, or a different number of nulls, or the bounds are not in the order " +
		"that the index states. A reader that skips pages by them misses rows."},
	{Code: "parquet.layout", Severity: region.Note, Help: "Nothing in the file refers to these bytes. Some writers " +
		"leave such bytes; no rows are lost."},
	{Code: "parquet.levels", Severity: region.Warning, Help: "Size statistics of a column chunk or of pages do " +
		"not match the levels, or the bytes of the strings. A reader that plans memory by them, or takes numbers " +
		"of nulls and empty lists from them, is wrong; rows are read without them."},
	{Code: "parquet.magic", Severity: region.Error, Help: "The file does not begin with PAR1: its first bytes " +
		"were overwritten. No reader needs them if the footer is intact, but what follows them may be damaged " +
		"too."},
	{Code: "parquet.misplaced", Severity: region.Error, Help: "The footer has one column chunk in place of another: " +
		"its metadata name another column, its bytes also belong to another chunk or lie among those of another row " +
		"group, or a row group has another's ordinal. Every page may be intact, but cells belong to other rows or " +
		"columns."},
	{Code: "parquet.order", Severity: region.Error, Help: "The rows of a row group are not in the order of its " +
		"sorting_columns, or these name no column. A reader that searches by bisection, or merges row groups, " +
		"misses rows. Many writers record the order without checking it; no row is lost."},
	{Code: "parquet.page", Severity: region.Error, Help: "A page or its header cannot be read."},
	{Code: "parquet.page.checksum", Severity: region.Error, Help: "The checksum of a page does not match its bytes."},
	{Code: "parquet.part", Severity: region.Error, Help: "The file is one of several files of a table, as stoa " +
		"writes them for Kudu's restore job, and records which one: the one before or after it is missing, or it " +
		"has the name of another. Rows are missing, or occur twice."},
	{Code: "parquet.recovered", Severity: region.Note,
		Help: "Recover rebuilt row groups without the footer at the end of the file, or found where column chunks " +
			"are after bytes were inserted or removed before the footer."},
	{Code: "parquet.rows", Severity: region.Error,
		Help: "The footer's number of rows is not the sum over its row groups."},
	{Code: "parquet.rows.lost", Severity: region.Error, Help: "Recover found pages that do not make a complete " +
		"row group, for example because the file ends in the middle of one. Its complete columns can be read: " +
		"on their own, or with null for the cells of the other columns."},
	{Code: "parquet.sizes", Severity: region.Warning, Help: "The footer's uncompressed size of a column chunk " +
		"differs from its pages, the size of a row group differs from its chunks, or the first page, or first data " +
		"page, of a chunk is not at the offset in the footer. stoa still reads the rows; a reader that relies on " +
		"these values may not."},
	{Code: "parquet.statistics", Severity: region.Error, Help: "A row group has a value outside its statistics, " +
		"or a different number of nulls. A reader that skips row groups by them misses rows. The deprecated min " +
		"and max, whose order was never specified, are only checked where every order agrees: signed numbers; " +
		"unsigned ones without their highest bit; strings and bytes up to the first byte that differs, if it is " +
		"ASCII in both."},
	{Code: "parquet.statistics.distinct", Severity: region.Warning, Help: "A row group or page does not have as " +
		"many distinct values as its statistics say. A reader that answers COUNT(DISTINCT) from them is wrong; " +
		"some writers only estimate the number."},
	{Code: "parquet.statistics.writer", Severity: region.Warning, Help: "Statistics are wrong in a way that is known " +
		"of the program that wrote the file: Arrow C++ (pyarrow) and Arrow Go count too few nulls in a dictionary " +
		"below a null struct, and mark bounds as exact that no row has; parquet-rs (in delta-rs) says that a page of " +
		"lists has only nulls if it has as many as rows. The values are right. A reader that trusts " +
		"the number of nulls misses rows when it looks for nulls; stoa does not trust it."},
	{Code: "parquet.summary", Severity: region.Error, Help: "A summary (_metadata) names a file that is not in " +
		"its directory, or that is shorter than the summary says: a file of the table is missing or truncated, " +
		"or the summary is older than the table. Readers that use the summary fail; stoa reads the files " +
		"themselves."},
	{Code: "parquet.types", Severity: region.Warning, Help: "The Arrow schema in the footer (ARROW:schema) has a " +
		"type that Arrow's library does not know, such as a 128-bit integer. All columns are then read as " +
		"Parquet types, as with arrow-schema=ignore: values are as they are stored, but types that Parquet " +
		"cannot express are lost."},
	{Code: "parquet.unreadable", Severity: region.Error, Help: "The storage failed to read bytes; the message gives " +
		"the reason."},
	{Code: "parquet.unsupported", Severity: region.Error, Help: "The file may be intact, but uses something that " +
		"is not supported, such as a codec; the message names it. That part of it was not verified."},
	{Code: "parquet.values", Severity: region.Error,
		Help: "The footer's number of values of a column chunk is not that of its pages."},
}
