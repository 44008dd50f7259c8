package verify

import (
	"stoa/internal/check"
	"stoa/region"
)

// Codes are the kinds of findings of Verify.
var Codes = check.Codes{
	{Code: "parquet.bloom", Severity: region.Error, Help: "A Bloom filter does not have a value that its column " +
		"chunk has, or cannot be read. Whoever asks it for the value misses rows; stoa does not ask it when it reads."},
	{Code: "parquet.column", Severity: region.Error,
		Help: "A column of a row group cannot be read; the rows of the group are lost in that column."},
	{Code: "parquet.copy", Severity: region.Warning, Help: "The copy of a column chunk's metadata that some " +
		"writers put after the chunk (file_offset points to it) is not what the footer says of the chunk: one " +
		"of the two is damaged. Readers believe the footer."},
	{Code: "parquet.dictionary", Severity: region.Error, Help: "The dictionary of a column chunk does not have " +
		"as many entries as its header says. Rows whose entries are there are read here; other readers refuse " +
		"the chunk."},
	{Code: "parquet.encodings", Severity: region.Warning, Help: "The footer does not name an encoding that a " +
		"page of a column chunk has, or counts other pages in encoding_stats than there are. Whoever reads only " +
		"what it names, or skips chunks by whether all of their pages have a dictionary, may miss rows; stoa " +
		"goes by the pages."},
	{Code: "parquet.footer", Severity: region.Error, Help: "The footer cannot be read, so nothing of the file can."},
	{Code: "parquet.footer.cut", Severity: region.Warning, Help: "Recover found the beginning of a footer that " +
		"is cut: names and Parquet's own types of the columns are known, but what follows the row groups " +
		"is lost, as the Arrow schema and all other key/value metadata. Types that Parquet has no word for come " +
		"as those that stand for them."},
	{Code: "parquet.index", Severity: region.Error, Help: "An offset or column index cannot be read, or does " +
		"not point to the pages. Reading everything does not need it; seeking and filtering do."},
	{Code: "parquet.index.bounds", Severity: region.Error, Help: "A page has a value outside of its bounds in " +
		"the column index or its header, or another number of nulls, or the bounds are not in the order that " +
		"the index says. Whoever skips pages by them misses rows."},
	{Code: "parquet.layout", Severity: region.Note,
		Help: "Bytes that nothing in the file points to. Some writers leave such bytes; no rows are lost by them."},
	{Code: "parquet.levels", Severity: region.Warning, Help: "Size statistics, of a column chunk or of pages, " +
		"do not count the levels that are there, or the bytes of the strings. Whoever plans memory by them, or " +
		"takes the numbers of nulls and of empty lists from them, is wrong; rows are read without them."},
	{Code: "parquet.magic", Severity: region.Error, Help: "The file does not begin with PAR1: its first bytes " +
		"were overwritten. No reader needs them if the footer is whole, but what follows them may be damaged, " +
		"too."},
	{Code: "parquet.misplaced", Severity: region.Error, Help: "The footer has a column chunk in the place of " +
		"another: its metadata names another column, its bytes are another chunk's, too, or lie among those of " +
		"another row group; or a row group says that it is another one. Every page may be sound, and cells are " +
		"those of other rows or columns."},
	{Code: "parquet.order", Severity: region.Error, Help: "The rows of a row group are not in the order that " +
		"its sorting_columns say, or these name no column. Whoever searches for a row by halves, or merges row " +
		"groups, misses rows. Writers write there what they are told; no row is lost."},
	{Code: "parquet.page", Severity: region.Error, Help: "A page, or its header, cannot be read."},
	{Code: "parquet.page.checksum", Severity: region.Error, Help: "The checksum of a page does not fit its bytes."},
	{Code: "parquet.part", Severity: region.Error, Help: "The file is one of several of a table, as stoa writes them " +
		"for Kudu's restore job, and says so: one before or after it is not there, or has another's name. Rows are " +
		"missing, or come twice."},
	{Code: "parquet.recovered", Severity: region.Note,
		Help: "Recover put row groups together without the footer at the end of the file."},
	{Code: "parquet.rows", Severity: region.Error, Help: "The footer's number of rows is not that of the row groups."},
	{Code: "parquet.rows.lost", Severity: region.Error, Help: "Recover found pages that make no whole row " +
		"group, as where the file is cut within one. Columns of it that are whole can be read: by themselves, " +
		"or with null in place of the others' cells."},
	{Code: "parquet.sizes", Severity: region.Warning, Help: "The footer's raw size of a column chunk is not " +
		"that of its pages, a size of a row group not that of its chunks, or its first page, or the first data " +
		"page of a chunk, is not where the footer says. Rows are read all the same here; a reader that plans by " +
		"them, or begins there, may not."},
	{Code: "parquet.statistics", Severity: region.Error, Help: "A row group has a value outside of its " +
		"statistics, or another number of nulls. Whoever skips row groups by them misses rows. The old min and " +
		"max, whose order was never written down, are compared with what any order has in common: signed " +
		"numbers; unsigned ones without their highest bit; strings and bytes up to the first byte that differs, " +
		"if it is ASCII in both."},
	{Code: "parquet.statistics.distinct", Severity: region.Warning, Help: "A row group or a page does not have " +
		"as many distinct values as its statistics say. Whoever answers a count of distinct values by them is " +
		"wrong; some writers only estimate it."},
	{Code: "parquet.summary", Severity: region.Error, Help: "A summary (_metadata) names a file that does not " +
		"lie beside it, or that is shorter than the summary says: a file of the table is missing or cut, or the " +
		"summary is older than the table. Whoever reads the table by its summary fails; stoa reads the files " +
		"themselves."},
	{Code: "parquet.types", Severity: region.Warning, Help: "The Arrow schema that the writer put into the " +
		"footer (ARROW:schema) has a type that Arrow's library does not know, as integers of 128 bits. All " +
		"columns are read as Parquet's own types then, as with arrow-schema=ignore: values are those that are " +
		"stored, but what Parquet has no word for comes as what stands for it."},
	{Code: "parquet.unreadable", Severity: region.Error,
		Help: "Bytes could not be read from where the file is kept; the message says why."},
	{Code: "parquet.unsupported", Severity: region.Error, Help: "The file may be sound, but needs something " +
		"that is not known here, as a codec; the message names it. That part of it was not verified."},
	{Code: "parquet.values", Severity: region.Error,
		Help: "The footer's number of values of a column chunk is not that of its pages."},
}
