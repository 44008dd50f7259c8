package layout

import (
	"context"

	"stoa/internal/check"
	"stoa/region"
)

// Codes lists the codes of findings, in order. The bytes under a failed checksum are not examined further.
var Codes = check.Codes{
	{Code: "redfile.bytes.lost", Severity: region.Error, Help: "Recover found bytes that are no structure of a " +
		"RedFile. The missing rows show what they were."},
	{Code: "redfile.column.copy", Severity: region.Error, Help: "The metadata of a column after its pages cannot be " +
		"read, or differs from that in the metadata of the file: one of the two is damaged. Readers use the file's; " +
		"recovery uses this copy if the file's is lost."},
	{Code: "redfile.column.damaged", Severity: region.Error, Help: "The metadata of a column chunk cannot be " +
		"read or contradicts the schema: the chunk is lost, that is, one column of one row group."},
	{Code: "redfile.column.count", Severity: region.Error, Help: "The number of values of a chunk, or of rows of a " +
		"row group, differs from its pages."},
	{Code: "redfile.columns.unknown", Severity: region.Warning, Help: "Recover found one row group, and nothing that " +
		"lists the columns of the table, as in a file without sync blocks that was truncated within its first row " +
		"group: the columns after that point are missing. A second row group, even an incomplete one, would show " +
		"them; --schema FILE gives them."},
	{Code: "redfile.coverage.gap", Severity: region.Warning, Help: "Bytes of the file belong to no structure. No " +
		"writer leaves any: bytes may have been inserted, which moved everything after them away from its offset, or " +
		"a row group was removed from the metadata. A chunk without checksums is not read if it ends there."},
	{Code: "redfile.coverage.overlap", Severity: region.Error, Help: "Two structures claim the same bytes. At least " +
		"one of the offsets is wrong."},
	{Code: "redfile.footer.cut", Severity: region.Warning, Help: "Recover found the beginning of metadata that was " +
		"cut off: it uses the schema, and each column chunk that is described completely. Chunks described after " +
		"that are lost, unless their own metadata follows their pages, as in files of newer writers."},
	{Code: "redfile.footer.damaged", Severity: region.Error, Help: "The metadata of the file cannot be read: the " +
		"file was truncated, was never finished, or its end was overwritten. Readers consider the file lost; recover " +
		"finds row groups by the structures between them."},
	{Code: "redfile.footer.crc", Severity: region.Error,
		Help: "The checksum of the file's metadata does not match its bytes. Offsets and types may be wrong."},
	{Code: "redfile.footer.literal", Severity: region.Note, Help: "The number at the end is the offset of the " +
		"metadata from the end of the file, as the first document words it. Programs wrote, and expect, the length " +
		"of the metadata."},
	{Code: "redfile.index.damaged", Severity: region.Error, Help: "An index page cannot be read or does not fit the " +
		"pages. Reading does not need it, and nothing is lost."},
	{Code: "redfile.index.bounds", Severity: region.Error, Help: "A value lies outside the bounds of its page in the " +
		"index page: filters miss rows."},
	{Code: "redfile.magic", Severity: region.Error, Help: "The file does not begin with RED1."},
	{Code: "redfile.metadata.other", Severity: region.Error, Help: "The _metadata.red of a split table is not the " +
		"table's metadata, but a file with row groups of its own, such as a copy of a part: only these are read, and " +
		"the rows of the other parts are missing. Recover reads the parts, and also this file if that part is " +
		"missing."},
	{Code: "redfile.page.crc", Severity: region.Error,
		Help: "The checksum of a page does not match its bytes: the rows of this page are lost in this column."},
	{Code: "redfile.page.damaged", Severity: region.Error, Help: "A page cannot be decoded: it contradicts its " +
		"own encoding. Without checksums this is how damage shows. Its rows are lost in this column."},
	{Code: "redfile.page.header", Severity: region.Error, Help: "The header of a page cannot be read: where " +
		"the next one begins is unknown, so the rest of the chunk is lost, unless there is an index page."},
	{Code: "redfile.page.unknown", Severity: region.Note, Help: "A page has an unknown type. Readers skip it."},
	{Code: "redfile.part.end", Severity: region.Warning, Help: "The metadata at the end of a part of a split table " +
		"cannot be read, or lists other rows than the table has there. Readers of the table use its _metadata.red; " +
		"the part cannot be read alone, and recovery cannot use it if _metadata.red is lost."},
	{Code: "redfile.part.missing", Severity: region.Error, Help: "According to its sync block, a part of a split " +
		"table begins with a row group that others should precede, but the file of these is missing, and so is " +
		"_metadata.red; or _metadata.red names a part that does not exist. The rows are lost."},
	{Code: "redfile.part.other", Severity: region.Error, Help: "According to their sync blocks, a part of a split " +
		"table has another marker than the previous part, and _metadata.red, which lists the parts, is missing: one " +
		"of them belongs to another table, and replaces a part whose rows are lost. Or a part is not the one that " +
		"_metadata.red expects: one of the two is another table's, or from another time. Or _metadata.red does not " +
		"name a part beside it that belongs to its table, or to the table of a part that it names: it is older than " +
		"that part, whose rows are not read."},
	{Code: "redfile.part.repeated", Severity: region.Error, Help: "According to their sync blocks, a part of a split " +
		"table begins with the same row group as another part beside it, and _metadata.red, which lists the parts, " +
		"is missing: one of the two is a copy. If it replaces another part, the rows of that part are lost."},
	{Code: "redfile.parts.unlisted", Severity: region.Error, Help: "The _metadata.red of a split table is missing. " +
		"Each part is a complete file and is read, but nothing records how many there were: parts after the last one " +
		"may also be missing."},
	{Code: "redfile.read", Severity: region.Error, Help: "The storage failed to read bytes of the file, or of a file " +
		"with its chunks."},
	{Code: "redfile.recover.limit", Severity: region.Warning, Help: "Recover read several times the size of the " +
		"file in search of structures, which only crafted files make necessary. It " +
		"continues, but from then on recognizes only short structures where it does not expect them."},
	{Code: "redfile.recovered", Severity: region.Note, Help: "Recover assembled row groups without the metadata at " +
		"the end of the file."},
	{Code: "redfile.rows", Severity: region.Error, Help: "The file's number of rows differs from that of its row " +
		"groups."},
	{Code: "redfile.rows.lost", Severity: region.Error, Help: "Recover found a row group with missing columns, as " +
		"when the file was truncated within it. Its complete columns are read, with null for the cells of the others " +
		"if lost cells are to be null; if its number of rows is unknown, it is given up."},
	{Code: "redfile.schema.damaged", Severity: region.Error, Help: "The Arrow schema in the file cannot be read, " +
		"does not have the file's columns, or does not match its checksum. Types would be wrong, and with them every " +
		"value. Recover uses the copy in the first sync block or, if there is none, the file's own types."},
	{Code: "redfile.schema.lost", Severity: region.Error, Help: "Recover found neither the metadata at the end nor a " +
		"sync block with the schema: columns are shown in their stored types, unsigned numbers as signed ones, " +
		"decimals as bytes, timestamps as numbers. The message names them; the option schema=FILE gives their types."},
	{Code: "redfile.schema.guessed", Severity: region.Note, Help: "The file does not record its schema (generations " +
		"A and B): which groups are nullable or repeated was inferred from the paths and maximum levels of the " +
		"columns, and from their entries. The message tells whether other schemas would have the same levels."},
	{Code: "redfile.sync.damaged", Severity: region.Warning,
		Help: "A sync block is damaged or belongs to another file. Only recovery needs them."},
	{Code: "redfile.unfinished", Severity: region.Error, Help: "The metadata at the end is that between two row " +
		"groups: the writer did not finish, or the file was truncated just after it. The row groups that it lists " +
		"are complete; those after it, if there were any, are missing, and their number is unknown."},
	{Code: "redfile.unsupported", Severity: region.Error,
		Help: "The file may be intact, but uses a feature that stoa does not support; the message names it."},
}

// Reporter returns a reporter of findings about the object part, which go to yield.
func Reporter(ctx context.Context, part string, yield func(region.Finding) bool) *check.Reporter {
	r := check.New(ctx, part, Codes, yield)
	r.Read, r.Unsupported = "redfile.read", "redfile.unsupported"
	return r
}
