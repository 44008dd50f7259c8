package layout

import (
	"context"

	"stoa/internal/check"
	"stoa/region"
)

// Codes lists the codes of findings, in order. The bytes under a failed checksum are not examined further.
var Codes = check.Codes{
	{Code: "redfile.bytes.lost", Severity: region.Error, Help: "Recover found bytes that are no structure of a " +
		"RedFile. The rows that are missing show what they were."},
	{Code: "redfile.column.copy", Severity: region.Error, Help: "The metadata of a column after its pages " +
		"cannot be read, or differs from that in the metadata of the file: one of the two is damaged. Readers " +
		"go by the file's; recovery goes by this one where the file's is lost."},
	{Code: "redfile.column.damaged", Severity: region.Error, Help: "The metadata of a column chunk cannot be " +
		"read or contradicts the schema: the chunk is lost, that is, one column of one row group."},
	{Code: "redfile.column.count", Severity: region.Error,
		Help: "The number of values of a chunk, or of rows of a row group, is not that of its pages."},
	{Code: "redfile.columns.unknown", Severity: region.Warning, Help: "Recover found one row group, and nothing " +
		"that says which columns the table has, as in a file without sync blocks that is cut within its first " +
		"row group: the columns after the cut are missing. With a second row group, begun at least, this is " +
		"known; --schema FILE says it."},
	{Code: "redfile.coverage.gap", Severity: region.Warning, Help: "Bytes that no structure of the file claims. " +
		"No writer leaves any: bytes may have been put in, and what follows them moved away from its " +
		"offset, or a row group was cut out of the metadata. A chunk without checksums is not read if it ends " +
		"there."},
	{Code: "redfile.coverage.overlap", Severity: region.Error,
		Help: "Bytes that two structures claim. At least one of the offsets is wrong."},
	{Code: "redfile.footer.damaged", Severity: region.Error, Help: "The metadata of the file cannot be read: " +
		"the file is cut, was never finished, or its end is overwritten. Readers take it for lost; recover " +
		"finds row groups by what stands between them."},
	{Code: "redfile.footer.crc", Severity: region.Error,
		Help: "The checksum of the file's metadata does not match its bytes. Offsets and types may be wrong."},
	{Code: "redfile.footer.literal", Severity: region.Note, Help: "The number at the end is the offset of the " +
		"metadata from the end of the file, as the first document words it. Programs wrote, and expect, the " +
		"length of the metadata."},
	{Code: "redfile.index.damaged", Severity: region.Error,
		Help: "An index page cannot be read or does not fit the pages. Reading does without it, and nothing is lost."},
	{Code: "redfile.index.bounds", Severity: region.Error,
		Help: "A value lies outside of the bounds that the index page gives for its page: filters miss rows."},
	{Code: "redfile.magic", Severity: region.Error, Help: "The file does not begin with RED1."},
	{Code: "redfile.metadata.other", Severity: region.Error, Help: "The _metadata.red of a split table is not " +
		"its metadata, but a file with row groups of its own, as a copy of a part is: only these are read, and " +
		"the rows of the other parts are missing. Recover reads the parts, and it among them if it is one that " +
		"is missing there."},
	{Code: "redfile.page.crc", Severity: region.Error,
		Help: "The checksum of a page does not match its bytes: the rows of this page are lost in this column."},
	{Code: "redfile.page.damaged", Severity: region.Error, Help: "A page cannot be decoded: it contradicts its " +
		"own encoding. Without checksums this is how damage shows. Its rows are lost in this column."},
	{Code: "redfile.page.header", Severity: region.Error, Help: "The header of a page cannot be read: where " +
		"the next one begins is unknown, so the rest of the chunk is lost, unless there is an index page."},
	{Code: "redfile.page.unknown", Severity: region.Note,
		Help: "A page of a type that is not known. Readers skip it."},
	{Code: "redfile.part.end", Severity: region.Warning, Help: "The metadata at the end of a part of a split " +
		"table cannot be read, or mentions other rows than the table has there. Readers of the table go by its " +
		"_metadata.red; the part cannot be read alone, and recovery must do without it if _metadata.red is lost."},
	{Code: "redfile.part.missing", Severity: region.Error, Help: "A part of a split table begins with a row " +
		"group before which others should be, as its sync block says, but the file of these is missing, and so " +
		"is _metadata.red; or _metadata.red names a part that is not there. The rows are lost."},
	{Code: "redfile.part.other", Severity: region.Error, Help: "A part of a split table has another marker than " +
		"the part before it, as their sync blocks say, and _metadata.red, which says which parts there are, is " +
		"missing: one of them is of another table, and stands in the place of a part whose rows are lost. Or a " +
		"part is not the one that _metadata.red takes it for: one of the two is another's, or of another time. Or " +
		"_metadata.red does not name a part beside it that is of its table, or of that of a part that it names: it " +
		"is older than that part, whose rows are not read."},
	{Code: "redfile.part.repeated", Severity: region.Error, Help: "A part of a split table begins with the same " +
		"row group as another part beside it, as their sync blocks say, and _metadata.red, which says which " +
		"parts there are, is missing: one is a copy. Where it stands in the place of another part, the rows of " +
		"that are lost."},
	{Code: "redfile.parts.unlisted", Severity: region.Warning, Help: "The _metadata.red of a split table is " +
		"missing. Each part is a whole file and is read, but nothing says how many there were: parts after the " +
		"last one may be missing, too."},
	{Code: "redfile.read", Severity: region.Error,
		Help: "Bytes of the file, or of one that holds its chunks, could not be read from where it is kept."},
	{Code: "redfile.recover.limit", Severity: region.Warning, Help: "Recover read several times the size of the " +
		"file in search of structures, which only crafted files make necessary. It " +
		"continues, but from then on recognizes only short structures where it does not expect them."},
	{Code: "redfile.recovered", Severity: region.Note,
		Help: "Recover put row groups together without the metadata at the end of the file."},
	{Code: "redfile.rows", Severity: region.Error, Help: "The file's number of rows is not that of its row groups."},
	{Code: "redfile.rows.lost", Severity: region.Error, Help: "Recover found a row group of which columns are " +
		"missing, as when the file was cut within it. Those that are whole are read, with null in place of the " +
		"others' cells if lost cells are to be null; where nothing says how many rows it has, it is given up."},
	{Code: "redfile.schema.damaged", Severity: region.Error, Help: "The Arrow schema that the file keeps cannot " +
		"be read, does not have the file's columns, or is not the one that its checksum is of. Types would be " +
		"others, and with them every value. Recover takes the copy in the first sync block, or, where there is " +
		"none, the file's own types."},
	{Code: "redfile.schema.lost", Severity: region.Error, Help: "Recover found neither the metadata at the end nor a " +
		"sync block with the schema: columns are shown as they are stored, unsigned numbers as signed ones, " +
		"decimals as bytes, timestamps as numbers. The message names them; the option schema=FILE says what they " +
		"mean."},
	{Code: "redfile.schema.guessed", Severity: region.Note, Help: "The file does not say its schema " +
		"(generations A and B): which groups may be null or repeat was inferred from the paths and maximum " +
		"levels of the columns, and from what their entries have. The message says whether other schemas would " +
		"have the same levels."},
	{Code: "redfile.sync.damaged", Severity: region.Warning,
		Help: "A sync block is damaged or belongs to another file. Only recovery needs them."},
	{Code: "redfile.unfinished", Severity: region.Error, Help: "The metadata at the end is one of those that " +
		"stand between row groups: the writer did not finish, or the file is cut just after it. The row groups " +
		"it mentions are whole; those after it, if there were any, are missing, and nothing says how many they were."},
	{Code: "redfile.unsupported", Severity: region.Error,
		Help: "The file may be intact, but uses a feature that stoa does not support; the message names it."},
}

// Reporter returns a reporter of findings about the object part, which go to yield.
func Reporter(ctx context.Context, part string, yield func(region.Finding) bool) *check.Reporter {
	r := check.New(ctx, part, Codes, yield)
	r.Read, r.Unsupported = "redfile.read", "redfile.unsupported"
	return r
}
