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
	{Code: "cfile.block.count", Severity: region.Error, Help: "The number of rows of a data block differs from the " +
		"index, or its null bitmap does not have one set bit for each value."},
	{Code: "cfile.block.damaged", Severity: region.Error, Help: "A data block cannot be decoded: it contradicts " +
		"its own encoding. In a file without checksums this is how damage shows."},
	{Code: "cfile.block.ordinal", Severity: region.Error, Help: "The first row of a data block differs from the one " +
		"in the index. The block may belong elsewhere."},
	{Code: "cfile.bloom.damaged", Severity: region.Error, Help: "A bloom filter cannot be read. Look-ups that use it " +
		"would have to read the rows."},
	{Code: "cfile.coverage.gap", Severity: region.Warning, Help: "Bytes of the file belong to no structure. Kudu " +
		"leaves none: a block may have been removed from the index."},
	{Code: "cfile.coverage.overlap", Severity: region.Error, Help: "Two structures claim the same bytes. At least " +
		"one of the pointers is wrong."},
	{Code: "cfile.delta.damaged", Severity: region.Error,
		Help: "A value of a delta file is not a row, a timestamp and a list of changes."},
	{Code: "cfile.delta.order", Severity: region.Error, Help: "The changes of a delta file are not in the order of " +
		"rows, and of timestamps within a row: applying them gives wrong cells."},
	{Code: "cfile.delta.stats", Severity: region.Warning, Help: "The statistics of a delta file do not agree " +
		"with its changes. Kudu skips files by them, so changes may be overlooked."},
	{Code: "cfile.dict.checksum", Severity: region.Error,
		Help: "The checksum of the dictionary does not match its bytes: all rows that use it are lost."},
	{Code: "cfile.dict.damaged", Severity: region.Error,
		Help: "The dictionary cannot be decoded: all rows that use it are lost."},
	{Code: "cfile.footer.checksum", Severity: region.Error, Help: "The checksum of the footer does not match its " +
		"bytes. Type, encoding and roots of the indexes may be wrong."},
	{Code: "cfile.footer.damaged", Severity: region.Error, Help: "The footer cannot be read: the file was truncated, " +
		"or its end was overwritten. Recover may find the blocks through the remaining index blocks."},
	{Code: "cfile.footer.mended", Severity: region.Note, Help: "One bit of the footer, or of its checksum, was " +
		"flipped, and the checksum shows which: recover read the file with that bit flipped back. Nothing is lost by " +
		"it; write the file anew."},
	{Code: "cfile.header.checksum", Severity: region.Error, Help: "The checksum of the header does not match its " +
		"bytes. The header has little but the version."},
	{Code: "cfile.header.damaged", Severity: region.Error, Help: "The header cannot be read."},
	{Code: "cfile.index.checksum", Severity: region.Error,
		Help: "The checksum of an index block does not match its bytes. The rows below it cannot be found by this " +
			"index."},
	{Code: "cfile.index.damaged", Severity: region.Error, Help: "An index block cannot be read, or one of its " +
		"entries has an invalid pointer."},
	{Code: "cfile.index.disagree", Severity: region.Error,
		Help: "The positional and the value index do not list the same data blocks."},
	{Code: "cfile.index.key", Severity: region.Error, Help: "A key of the value index does not lie between the last " +
		"value of the previous block and the first value of its own block: look-ups miss rows."},
	{Code: "cfile.index.order", Severity: region.Error, Help: "The keys of an index are not ascending."},
	{Code: "cfile.int128.range", Severity: region.Note, Help: "A value of type int128 has 39 digits. It is kept " +
		"unchanged, but decimal128(38, 0), the type as which it is shown, strictly has only 38."},
	{Code: "cfile.keys.range", Severity: region.Warning, Help: "The metadata min_key or max_key is not the key of " +
		"the first or the last row. Kudu uses them to skip rowsets."},
	{Code: "cfile.kind", Severity: region.Error, Help: "The file is not of the expected kind: a delta file, a bloom " +
		"file or an ad-hoc index is binary and has a value index, and this file does not. It may be another file " +
		"under this name."},
	{Code: "cfile.numvalues", Severity: region.Error, Help: "The footer's number of values differs from that of the " +
		"blocks."},
	{Code: "cfile.prefix.restarts", Severity: region.Warning, Help: "A restart point of a prefix block does not " +
		"point to an entry without a prefix. Reading in order does not need restart points; Kudu's seeks do."},
	{Code: "cfile.read", Severity: region.Error, Help: "The storage failed to read bytes of the file."},
	{Code: "cfile.recovered.guessed", Severity: region.Warning, Help: "The footer is lost, and the options did not " +
		"give all of its contents: recover tried the possible values, and blocks were found with one combination. " +
		"The message names it; if it is wrong, give encoding=, compression= and nullable=."},
	{Code: "cfile.recovered", Severity: region.Note, Help: "Recover found blocks without an intact index."},
	{Code: "cfile.rows.lost", Severity: region.Error, Help: "Recover did not find the blocks of these rows: their " +
		"bytes are damaged, truncated or overwritten."},
	{Code: "cfile.set", Severity: region.Error, Help: "The files of a table in a directory do not belong together: " +
		"one is missing, is of another column or type, was written with another table, or has another number of " +
		"rows; or table.json is damaged. Files written with plain-metadata=true have neither names nor the mark of " +
		"the table: if two columns of the same type were swapped, or a file comes from another table of the same " +
		"shape, that is detected by the length or, if the lengths are equal, by the SHA-256, which only verify " +
		"compares. In files that older versions of stoa wrote without a mark, neither can be detected."},
	{Code: "cfile.set.missing", Severity: region.Error, Help: "A directory has CFiles with the same number of rows " +
		"each, named after their columns, but no table.json. Without one the directory is not read as a table, so it " +
		"is not an intact table. If each file is a separate column, nothing is wrong: each was verified, and can be " +
		"read by its own name. If they were written as one table, nothing records any more which files belonged to " +
		"it and in which order; stoa recover combines the files that exist."},
	{Code: "cfile.set.unknown", Severity: region.Note, Help: "The directory of a table has a file that does not " +
		"belong to the table. It is not read; stoa does not replace a directory that contains such files."},
	{Code: "cfile.struct", Severity: region.Error, Help: "The columns of a struct contradict each other: the struct " +
		"is null but one of its fields is not, or it is present but a non-nullable field is null. It is unknown " +
		"which column is right; the rows are not returned."},
	{Code: "cfile.unsupported", Severity: region.Error,
		Help: "The file may be intact, but uses a feature that stoa does not support; the message names it."},
	{Code: "cfile.utf8", Severity: region.Note, Help: "A value of type string or varchar is not UTF-8. Kudu does not " +
		"check this; the bytes are kept unchanged."},
	{Code: "cfile.values.order", Severity: region.Error, Help: "The values of a file with a value index are not " +
		"ascending: look-ups miss rows."},
	{Code: "cfile.version.mixed", Severity: region.Note, Help: "Header and footer have the magics of different " +
		"versions. Kudu reads such files by the header's version."},
}
