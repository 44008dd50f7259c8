package block

import (
	"stoa/internal/check"
	"stoa/region"
)

// Code is a kind of finding of Verify and Recover.
type Code = region.CodeDoc

// Codes are all kinds of findings, by name. A wrong checksum is reported once; the bytes that it covers are then not
// examined further.
var Codes = check.Codes{
	{Code: "cfile.block.checksum", Severity: region.Error, Help: "The checksum of a data block does not match its " +
		"bytes. Its rows are lost, unless another copy of the file is at hand."},
	{Code: "cfile.block.count", Severity: region.Error, Help: "A data block does not have as many rows as the " +
		"index says, or its null bitmap does not have as many ones as there are values."},
	{Code: "cfile.block.damaged", Severity: region.Error, Help: "A data block cannot be decoded: it contradicts " +
		"its own encoding. In a file without checksums this is how damage shows."},
	{Code: "cfile.block.ordinal", Severity: region.Error,
		Help: "A data block says that it begins at another row than the index says. The block may belong elsewhere."},
	{Code: "cfile.bloom.damaged", Severity: region.Error,
		Help: "A bloom filter cannot be read. Look-ups through it would have to read the rows."},
	{Code: "cfile.coverage.gap", Severity: region.Warning, Help: "Bytes that no structure of the file claims. " +
		"Kudu writes none: a block may have been cut out of the index."},
	{Code: "cfile.coverage.overlap", Severity: region.Error,
		Help: "Bytes that two structures claim. At least one of the pointers is wrong."},
	{Code: "cfile.delta.damaged", Severity: region.Error,
		Help: "A value of a delta file is not a row, a timestamp and a list of changes."},
	{Code: "cfile.delta.order", Severity: region.Error, Help: "The changes of a delta file are not in the order " +
		"of rows, and of timestamps within a row: applying them gives wrong cells."},
	{Code: "cfile.delta.stats", Severity: region.Warning, Help: "The statistics of a delta file do not agree " +
		"with its changes. Kudu skips files by them, so changes may be overlooked."},
	{Code: "cfile.dict.checksum", Severity: region.Error,
		Help: "The checksum of the dictionary does not match its bytes: all rows that use it are lost."},
	{Code: "cfile.dict.damaged", Severity: region.Error,
		Help: "The dictionary cannot be decoded: all rows that use it are lost."},
	{Code: "cfile.footer.checksum", Severity: region.Error, Help: "The checksum of the footer does not match its " +
		"bytes. Type, encoding and roots of the indexes may be wrong."},
	{Code: "cfile.footer.damaged", Severity: region.Error, Help: "The footer cannot be read: the file is cut, " +
		"or its end is overwritten. Recover may find the blocks by the index blocks that are left."},
	{Code: "cfile.footer.mended", Severity: region.Note, Help: "One bit of the footer, or of its checksum, is not as " +
		"it was written, and the checksum says which: recover read the file with that bit flipped back. Nothing is " +
		"lost by it; write the file anew."},
	{Code: "cfile.header.checksum", Severity: region.Error,
		Help: "The checksum of the header does not match its bytes. The header holds little but the version."},
	{Code: "cfile.header.damaged", Severity: region.Error, Help: "The header cannot be read."},
	{Code: "cfile.index.checksum", Severity: region.Error,
		Help: "The checksum of an index block does not match its bytes. The rows below it cannot be found by this " +
			"index."},
	{Code: "cfile.index.damaged", Severity: region.Error,
		Help: "An index block cannot be read, or an entry of it points nowhere."},
	{Code: "cfile.index.disagree", Severity: region.Error,
		Help: "The positional and the value index do not list the same data blocks."},
	{Code: "cfile.index.key", Severity: region.Error, Help: "A key of the value index does not lie between the " +
		"last value of the block before and the first one of its own: look-ups miss rows."},
	{Code: "cfile.index.order", Severity: region.Error, Help: "The keys of an index fall."},
	{Code: "cfile.int128.range", Severity: region.Note, Help: "A value of type int128 has 39 digits. It is kept " +
		"as it is, but decimal128(38, 0), as which it is shown, strictly has 38."},
	{Code: "cfile.keys.range", Severity: region.Warning, Help: "The metadata min_key or max_key is not the key " +
		"of the first or the last row. Kudu skips rowsets by them."},
	{Code: "cfile.kind", Severity: region.Error, Help: "The file is not of the kind that it should be: a delta " +
		"file, a bloom file or an ad-hoc index are binary and have a value index, and this one is otherwise. " +
		"Perhaps another file stands under its name."},
	{Code: "cfile.numvalues", Severity: region.Error, Help: "The footer's number of values is not that of the blocks."},
	{Code: "cfile.prefix.restarts", Severity: region.Warning, Help: "A restart point of a prefix block is not " +
		"where an entry without a prefix begins. Reading in order does not need them; Kudu's seeks do."},
	{Code: "cfile.read", Severity: region.Error, Help: "Bytes of the file could not be read from where it is kept."},
	{Code: "cfile.recovered.guessed", Severity: region.Warning, Help: "The footer is gone, and the options did " +
		"not say all that it said: what they left open was tried, and blocks were found in one way. The message " +
		"says in which; if it is not the right one, say encoding=, compression= and nullable=."},
	{Code: "cfile.recovered", Severity: region.Note, Help: "Recover found blocks without the help of an intact index."},
	{Code: "cfile.rows.lost", Severity: region.Error,
		Help: "Recover did not find the blocks of these rows: their bytes are damaged, cut off or overwritten."},
	{Code: "cfile.set", Severity: region.Error, Help: "The files of a table in a directory do not belong " +
		"together: one is missing, is of another column or type, was written with another table, or has another " +
		"number of rows; or table.json is damaged. Files written with plain-metadata=true have neither names nor " +
		"the mark of the table: two columns of the same type that were swapped, and a file of another table of " +
		"the same shape, are detected by their length, or, if that is the same, by their SHA-256, which only " +
		"verify compares. In files that older versions of stoa wrote without a mark, neither can be detected."},
	{Code: "cfile.set.missing", Severity: region.Error, Help: "A directory holds CFiles of as many rows each, " +
		"named after their columns, and no table.json. The directory is not read as a table without one, so it " +
		"is not an intact one. If each is a column by itself, all is well: each was verified, and is read by its own " +
		"name. If they were written as one table, nothing says any more which files were the table's and in " +
		"which order; stoa recover puts those together that are there."},
	{Code: "cfile.set.unknown", Severity: region.Note, Help: "A file lies in the directory of a table that the " +
		"table does not know. It is not read; stoa does not replace a directory that holds such files."},
	{Code: "cfile.struct", Severity: region.Error, Help: "The columns of a struct contradict each other: it is " +
		"null and a field of it is not, or it is there and a field that cannot be null is. Which column is right " +
		"is unknown; the rows are not shown."},
	{Code: "cfile.unsupported", Severity: region.Error,
		Help: "The file may be intact, but uses a feature that stoa does not support; the message names it."},
	{Code: "cfile.utf8", Severity: region.Note,
		Help: "A value of type string or varchar is not UTF-8. Kudu does not look; the bytes are kept as they are."},
	{Code: "cfile.values.order", Severity: region.Error,
		Help: "The values of a file with a value index fall: look-ups miss rows."},
	{Code: "cfile.version.mixed", Severity: region.Note,
		Help: "Header and footer have the magics of different versions. Kudu reads that, and goes by the header's."},
}
