package layout

import (
	"stoa/internal/check"
	"stoa/region"
)

// Codes lists the codes of the findings of Verify and Recover, with their severities and help.
var Codes = check.Codes{
	{Code: "trevni.block.checksum", Severity: region.Error, Help: "The CRC-32 of a block does not match its bytes " +
		"in any of the forms in which one was ever written. Its rows are lost in that column."},
	{Code: "trevni.block.cut", Severity: region.Error,
		Help: "A block would lie after the end of the file: the file was cut, or a size in a descriptor is wrong."},
	{Code: "trevni.block.damaged", Severity: region.Error, Help: "A block cannot be decoded: it contradicts its " +
		"descriptor, its codec or its encoding. Without checksums this is how damage shows."},
	{Code: "trevni.block.empty", Severity: region.Note,
		Help: "A block without rows. It is skipped; Avro's own reader fails at it."},
	{Code: "trevni.block.padded", Severity: region.Note, Help: "A bzip2 block holds more than its raw size: " +
		"Avro before 1.10 compressed the whole of its buffer. What is too much is cut off; the old readers " +
		"cannot check the sum of such a block."},
	{Code: "trevni.block.rawsize", Severity: region.Warning, Help: "The raw size of a block that is not " +
		"compressed is not its stored size. The stored one is right, as Avro's reader takes it."},
	{Code: "trevni.checksum.form", Severity: region.Note, Help: "The checksums of a column match, but are not " +
		"written as the dialect's only writer or definition has them; the message says how. Other readers may " +
		"refuse them."},
	{Code: "trevni.checksum.name", Severity: region.Note, Help: "The checksum of a column is spelled otherwise " +
		"than Avro's readers know it, which refuse the column; the message has the word. It is read as what it means."},
	{Code: "trevni.checksum.zero", Severity: region.Warning, Help: "The checksums of a column are 0 and say " +
		"nothing. Every version of Avro writes them so with the null codec, and then cannot read its own file."},
	{Code: "trevni.codec.zlib", Severity: region.Note, Help: "Blocks of an Avro file are deflated with a zlib " +
		"header around them, as Impala did. Avro's own reader refuses them."},
	{Code: "trevni.column.damaged", Severity: region.Error,
		Help: "Where a column starts, or the descriptors of its blocks, cannot be read: all of the column is lost."},
	{Code: "trevni.column.duplicate", Severity: region.Note,
		Help: "Two columns have the same name. Avro refuses to write that, but reads it."},
	{Code: "trevni.column.rows", Severity: region.Error,
		Help: "The blocks of a column do not have as many rows as the header says."},
	{Code: "trevni.coverage.gap", Severity: region.Warning, Help: "Bytes that no structure of the file claims. " +
		"Readers go by the starts of columns, so they are allowed; no writer makes them. Where a column " +
		"without checksums ends there, only zeros at the file's end are: others say that bytes were put in."},
	{Code: "trevni.coverage.overlap", Severity: region.Error,
		Help: "Bytes that two structures claim. At least one start or size is wrong."},
	{Code: "trevni.firstvalue", Severity: region.Error,
		Help: "The first value in a block's descriptor is not that of the block: searches by value miss rows."},
	{Code: "trevni.firstvalue.boolean", Severity: region.Note, Help: "A boolean column with first values has " +
		"several blocks. The file is intact, but Avro's own reader returns wrong values from it."},
	{Code: "trevni.header.damaged", Severity: region.Error,
		Help: "The header cannot be read. The file has no copy of it, so nothing can be read without it."},
	{Code: "trevni.header.checksum", Severity: region.Error, Help: "The checksum that stoa keeps over the " +
		"header of its files does not match: names, types, counts or offsets may not be those that were written. " +
		"If only one bit is wrong, the checksum says which, and recover reads the file with that bit flipped " +
		"back. Else it reads on: names may be wrong, and decimals and times, whose scale and unit nothing " +
		"proves, are lost unless --schema states them."},
	{Code: "trevni.header.contradiction", Severity: region.Error, Help: "Two places of the header, or the " +
		"header and the file, contradict each other, and which is right is unknown: no columns, but rows and " +
		"bytes that belong to columns; a key that is a few bytes away from one of Trevni's; or a schema of just " +
		"these columns under another key."},
	{Code: "trevni.lengths.runs", Severity: region.Warning, Help: "A file of version 0 or 1 has runs of " +
		"lengths, which are version 2's. They are read as such; Avro before 1.7.5 misreads them."},
	{Code: "trevni.order", Severity: region.Error,
		Help: "The values of a column that is said to be sorted fall: searches by value miss rows."},
	{Code: "trevni.part.missing", Severity: region.Error, Help: "A file of a table that stoa divided into several " +
		"says that there is one before or after it, and that one is not there: its rows are missing. A part that " +
		"is to stand alone can be given a name of its own."},
	{Code: "trevni.part.other", Severity: region.Error, Help: "A file of a table that stoa divided into several is " +
		"not the one that was written there, or the one before it is not: its number is another, or the checksum of " +
		"the other's header. Files were exchanged, or one is of another table, or of an older state."},
	{Code: "trevni.part.repeated", Severity: region.Error, Help: "A file says that it is one of a table that stoa " +
		"divided into several, and that part is beside it: reading the directory gives the rows of the copy twice."},
	{Code: "trevni.read", Severity: region.Error, Help: "Bytes of the file could not be read from where it is kept."},
	{Code: "trevni.recovered", Severity: region.Error, Help: "Recover read the file in spite of what is wrong " +
		"in its header, and guessed what should be there; the message says what it did. A column that was " +
		"found in another place is read only if its blocks prove that it is whole: by checksums, or by ending " +
		"where the next begins."},
	{Code: "trevni.schema.inferred", Severity: region.Note, Help: "A file of the wiki's dialect without the " +
		"Arrow schema that stoa keeps: which steps of a column's path are optional or repeated was inferred " +
		"from names and levels, and another answer fits all entries as well. The levels are read as they are; " +
		"only the shape in which they are shown is a guess."},
	{Code: "trevni.schema.mismatch", Severity: region.Error, Help: "The file has a schema, Avro's or the one " +
		"that stoa keeps, and its columns are not those that the schema makes: one of the two is damaged, names " +
		"or types may be wrong, and which is unknown. Where the Avro schema does not fit the columns, " +
		"these are shown as they are."},
	{Code: "trevni.schema.unknown", Severity: region.Warning, Help: "The file has an Avro schema that stoa does " +
		"not show: a recursive one, or one of too many types. The columns are shown as they are."},
	{Code: "trevni.unsupported", Severity: region.Error,
		Help: "The file may be intact, but uses a feature that stoa does not support; the message names it."},
}
