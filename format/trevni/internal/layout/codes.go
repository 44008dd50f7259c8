package layout

import (
	"stoa/internal/check"
	"stoa/region"
)

// Codes lists the codes of the findings of Verify and Recover, with their severities and help.
var Codes = check.Codes{
	{Code: "trevni.block.checksum", Severity: region.Error, Help: "The CRC-32 of a block does not match its bytes in " +
		"any form that a known program writes. Its rows are lost in that column."},
	{Code: "trevni.block.cut", Severity: region.Error, Help: "A block would extend past the end of the file: the " +
		"file was truncated, or a size in a descriptor is wrong."},
	{Code: "trevni.block.damaged", Severity: region.Error, Help: "A block cannot be decoded: it contradicts its " +
		"descriptor, its codec or its encoding. Without checksums this is how damage shows."},
	{Code: "trevni.block.empty", Severity: region.Note,
		Help: "A block without rows. It is skipped; Avro's own reader fails at it."},
	{Code: "trevni.block.padded", Severity: region.Note, Help: "A bzip2 block has more than its raw size: Avro " +
		"before 1.10 compressed its whole buffer. The surplus is removed; those old readers cannot check the " +
		"checksum of such a block."},
	{Code: "trevni.block.rawsize", Severity: region.Warning, Help: "The raw size of a block that is not compressed " +
		"differs from its stored size. The stored size is used, as by Avro's reader."},
	{Code: "trevni.checksum.form", Severity: region.Note, Help: "The checksums of a column match, but are not stored " +
		"as the dialect's definition, or its only writer, stores them; the message tells how. Other readers may " +
		"refuse them."},
	{Code: "trevni.checksum.name", Severity: region.Note, Help: "The checksum of a column has a name that Avro's " +
		"readers do not know, so they refuse the column; the message has the name. stoa reads it by its meaning."},
	{Code: "trevni.checksum.zero", Severity: region.Warning, Help: "The checksums of a column are 0 and prove " +
		"nothing. Every version of Avro writes them with the null codec, and then cannot read its own file."},
	{Code: "trevni.codec.zlib", Severity: region.Note, Help: "Blocks of an Avro file are compressed by deflate with " +
		"a zlib header, as by Impala. Avro's own reader refuses them."},
	{Code: "trevni.column.damaged", Severity: region.Error, Help: "The start of a column, or the descriptors of its " +
		"blocks, cannot be read: the whole column is lost."},
	{Code: "trevni.column.duplicate", Severity: region.Note,
		Help: "Two columns have the same name. Avro refuses to write that, but reads it."},
	{Code: "trevni.column.rows", Severity: region.Error, Help: "The blocks of a column do not have the header's " +
		"number of rows."},
	{Code: "trevni.coverage.gap", Severity: region.Warning, Help: "Bytes of the file belong to no structure. Readers " +
		"locate columns by their starts, so such bytes are allowed; no writer leaves any. After a column without " +
		"checksums only zeros at the file's end are accepted: other bytes show that bytes were inserted."},
	{Code: "trevni.coverage.overlap", Severity: region.Error, Help: "Two structures claim the same bytes. At least " +
		"one start or size is wrong."},
	{Code: "trevni.firstvalue", Severity: region.Error, Help: "The first value in a block's descriptor differs from " +
		"that of the block: searches by value miss rows."},
	{Code: "trevni.firstvalue.boolean", Severity: region.Note, Help: "A boolean column with first values has " +
		"several blocks. The file is intact, but Avro's own reader returns wrong values from it."},
	{Code: "trevni.header.damaged", Severity: region.Error,
		Help: "The header cannot be read. The file has no copy of it, so nothing can be read without it."},
	{Code: "trevni.header.checksum", Severity: region.Error, Help: "The checksum over the header of a file written " +
		"by stoa does not match: names, types, counts or offsets may not be the written ones. If only one bit is " +
		"wrong, the checksum shows which, and recover reads the file with that bit flipped back. Otherwise it " +
		"continues: names may be wrong, and decimals and times, whose scale and unit nothing proves, are lost unless " +
		"--schema gives them."},
	{Code: "trevni.header.contradiction", Severity: region.Error, Help: "Two parts of the header, or the header and " +
		"the file, contradict each other, and it is unknown which one is right: no columns, but rows and bytes that " +
		"belong to columns; a key that differs in a few bytes from one of Trevni's; or a schema of exactly these " +
		"columns under another key."},
	{Code: "trevni.lengths.runs", Severity: region.Warning, Help: "A file of version 0 or 1 has runs of lengths, " +
		"which only version 2 defines. They are read as such; Avro before 1.7.5 misreads them."},
	{Code: "trevni.order", Severity: region.Error, Help: "The values of a column that is declared sorted are not " +
		"ascending: searches by value miss rows."},
	{Code: "trevni.part.missing", Severity: region.Error, Help: "A file of a table that stoa divided records that " +
		"there is one before or after it, and that one is missing with its rows. A part that is to be used alone can " +
		"be renamed."},
	{Code: "trevni.part.other", Severity: region.Error, Help: "A file of a table that stoa divided is not the one " +
		"that was written there, or the previous file is not: its number differs, or the checksum of the other's " +
		"header does. Files were exchanged, or one belongs to another table, or to an older state."},
	{Code: "trevni.part.repeated", Severity: region.Error, Help: "A file records that it is a part of a table that " +
		"stoa divided, and the same part is beside it: reading the directory returns the rows of the copy twice."},
	{Code: "trevni.read", Severity: region.Error, Help: "The storage failed to read bytes of the file."},
	{Code: "trevni.recovered", Severity: region.Error, Help: "Recover read the file in spite of errors in its " +
		"header, and inferred the right contents; the message describes how. A column that was found at another " +
		"offset is read only if its blocks prove that it is complete: by checksums, or by ending where the next " +
		"column begins."},
	{Code: "trevni.schema.inferred", Severity: region.Note, Help: "A file of the wiki's dialect has no Arrow schema, " +
		"which stoa stores: which steps of a column's path are optional or repeated was inferred from names and " +
		"levels, and another answer also fits all entries. The levels are read unchanged; only the shape in which " +
		"they are shown is inferred."},
	{Code: "trevni.schema.mismatch", Severity: region.Error, Help: "The file has a schema, Avro's or the one that " +
		"stoa stores, but its columns do not fit it: one of the two is damaged, names or types may be wrong, and it " +
		"is unknown which. If the Avro schema does not fit the columns, the columns are shown as stored."},
	{Code: "trevni.schema.unknown", Severity: region.Warning, Help: "The file has an Avro schema that stoa does not " +
		"support: a recursive one, or one of too many types. The columns are shown as stored."},
	{Code: "trevni.unsupported", Severity: region.Error,
		Help: "The file may be intact, but uses a feature that stoa does not support; the message names it."},
}
