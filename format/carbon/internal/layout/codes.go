package layout

import (
	"strings"

	"stoa/internal/check"
	"stoa/internal/sorted"
	"stoa/region"
)

// Codes are all finding codes of CarbonData, sorted. The format has no checksums: damage shows only where two
// structures, or a structure and its values, contradict each other.
var Codes = inOrder(append(tableCodes, DictionaryCodes...))

func inOrder(codes check.Codes) check.Codes {
	sorted.By(codes, func(a, b region.CodeDoc) int { return strings.Compare(a.Code, b.Code) })
	return codes
}

// tableCodes are the findings about everything but dictionaries.
var tableCodes = []region.CodeDoc{
	{Code: "carbon.blocklet.minmax", Severity: region.Error, Help: "A value lies outside the min and max of the " +
		"blocklet in the footer or the index: queries that filter by the column miss rows."},
	{Code: "carbon.calendar", Severity: region.Note, Help: "A data file has dates or times before 15 October 1582. " +
		"Java, and with it CarbonData's SDK and Spark before 3.0, counts these by the Julian calendar, Spark since " +
		"3.0 by the Gregorian one, and the file does not always record its writer: option calendar decides."},
	{Code: "carbon.chunk.damaged", Severity: region.Error, Help: "The metadata of a column chunk cannot be read: the " +
		"column is lost in this blocklet. Or a chunk does not begin where the previous one ends: bytes of the " +
		"previous one were removed or inserted, and its pages that still decode may have wrong values."},
	{Code: "carbon.coverage.gap", Severity: region.Warning, Help: "Bytes of a row-format file belong to no " +
		"structure: a streaming writer was interrupted. In a columnar file this is an error of the footer."},
	{Code: "carbon.delete.damaged", Severity: region.Error, Help: "A delete delta cannot be read, or does not " +
		"fit the update status (another block, another number of rows, a block without a data file): rows that " +
		"were deleted would come back."},
	{Code: "carbon.delete.range", Severity: region.Error,
		Help: "A delete delta deletes rows that the page does not have. It may belong to another file."},
	{Code: "carbon.delete.unnamed", Severity: region.Warning, Help: "A delete delta of a block is newer than every " +
		"delta that the update status names for the block: a failed delete left it, or the update status is an older " +
		"version, and deleted rows have reappeared."},
	{Code: "carbon.file.leftover", Severity: region.Note, Help: "No index of the segment names this data file, most " +
		"likely because it is left over from a failed load. It is not read."},
	{Code: "carbon.file.twice", Severity: region.Warning, Help: "A data file without an index file has the same " +
		"bytes as another data file of the table: the same rows were loaded twice, or the file was copied over " +
		"another one, whose rows are lost. Only the index could tell which."},
	{Code: "carbon.footer.damaged", Severity: region.Error, Help: "The footer of a data file cannot be read: the " +
		"file was truncated, or its end was overwritten. Recover finds the blocklets through the index file, or by " +
		"searching from the header on."},
	{Code: "carbon.header.damaged", Severity: region.Error, Help: "The header of a data file, which has the columns, " +
		"cannot be read."},
	{Code: "carbon.index.damaged", Severity: region.Error, Help: "An index file cannot be read. The footers of the " +
		"data files have all its information; CarbonData itself does not read a segment without it."},
	{Code: "carbon.index.disagree", Severity: region.Error, Help: "An index file contradicts the footer of a data " +
		"file: queries that use the index miss rows."},
	{Code: "carbon.index.missing", Severity: region.Warning,
		Help: "A segment has no index file. Stoa reads its data files; CarbonData itself does not."},
	{Code: "carbon.leftover", Severity: region.Note, Help: "Files of the table that are no longer read: earlier " +
		"update statuses, superseded delete deltas, segments that were compacted or deleted or never finished. " +
		"CarbonData removes them when the table is cleaned, as stoa clean does."},
	{Code: "carbon.page.count", Severity: region.Error, Help: "A page has more or fewer values than the footer " +
		"states, or a list more or fewer items than its length."},
	{Code: "carbon.page.damaged", Severity: region.Error,
		Help: "A page cannot be decoded: it contradicts its own encoding. Without checksums this is how damage shows."},
	{Code: "carbon.page.minmax", Severity: region.Error, Help: "A value lies outside the min and max in the page's " +
		"metadata. Either the value or the bound is damaged."},
	{Code: "carbon.read", Severity: region.Error, Help: "The storage failed to read the bytes."},
	{Code: "carbon.recovered", Severity: region.Note, Help: "Recover found blocklets without using the footer."},
	{Code: "carbon.rows.lost", Severity: region.Error,
		Help: "Recover could not restore these blocklets, or not all of " +
			"their columns."},
	{Code: "carbon.schema.damaged", Severity: region.Error, Help: "The schema file of a table cannot be read. Each " +
		"data file also lists its own columns."},
	{Code: "carbon.segment.bounds", Severity: region.Warning, Help: "The segment file of a segment with several data " +
		"files has a min or max of a column that does not cover all values. CarbonData itself writes such files. " +
		"They make it miss rows only with carbon.load.all.segment.indexes.to.cache=false; stoa does not use these " +
		"bounds. In a segment that was loaded as one data file this is an error (carbon.segment.minmax); in one " +
		"whose rows were changed since, files may be gone."},
	{Code: "carbon.segment.damaged", Severity: region.Error, Help: "Recover found a segment file (Metadata/segments) " +
		"damaged, or that of a segment of a partitioned table missing, and listed the directories instead. Only the " +
		"segment file records which partitions were dropped: their files stay until the table is cleaned, so their " +
		"rows may have reappeared. Partitions that the readable part of the file marks as dropped are left out."},
	{Code: "carbon.segment.file", Severity: region.Warning, Help: "A segment file (Metadata/segments) that " +
		"tablestatus names is missing. stoa reads the directory of the segment. Segments of a partitioned table have " +
		"no such directory: there this is an error, and `stoa recover` looks for their files in the directories of " +
		"the partitions (carbon.segment.damaged)."},
	{Code: "carbon.segment.foreign", Severity: region.Error, Help: "A file of a Parquet segment does not fit the " +
		"table: a column has a type, or a value, that the table's column cannot have."},
	{Code: "carbon.segment.minmax", Severity: region.Error, Help: "The min or max of a column in a segment file " +
		"differs from that of the segment's rows, or cannot be read, or the table has no such column: queries that " +
		"filter by it miss rows. The file may belong to another segment or table."},
	{Code: "carbon.segment.missing", Severity: region.Error, Help: "A segment in the status, or a data file in an " +
		"index, is missing or cannot be read; or the data files have fewer bytes than the status states, and no " +
		"index lists them."},
	{Code: "carbon.segment.entry", Severity: region.Error, Help: "A time or a size in an entry of tablestatus is " +
		"invalid: the entry is damaged. The rows do not depend on it, but the order of files by age may."},
	{Code: "carbon.segment.size", Severity: region.Warning, Help: "The size of a segment's data files or index files " +
		"differs from tablestatus: files were replaced or added without an entry, or tablestatus is from another " +
		"time."},
	{Code: "carbon.segment.unnamed", Severity: region.Warning, Help: "A segment has data files, but neither " +
		"tablestatus nor its history has an entry for it: its rows are not read. A compaction, or a load by a " +
		"release before 1.3, was interrupted before it wrote the entry. --segment N reads it."},
	{Code: "carbon.segment.vanished", Severity: region.Error, Help: "A segment has data files, but tablestatus has " +
		"no entry for it, although it must have had one: every number up to the highest one belonged to a load, and " +
		"a load writes its entry before its first file (releases before 1.3: after its last, an index file). So " +
		"bytes of tablestatus were lost, or it is an older version. It is unknown whether the rows belong to the " +
		"table: they are not read (--segment N reads them)."},
	{Code: "carbon.status.damaged", Severity: region.Error, Help: "tablestatus, or the update status that it names, " +
		"cannot be read, or has an impossible state or member: it is unknown which segments and rows belong to the " +
		"table."},
	{Code: "carbon.unsupported", Severity: region.Error,
		Help: "The file may be intact, but uses a feature that stoa does not support; the message names it."},
	{Code: "carbon.update.newer", Severity: region.Warning, Help: "Metadata has an update status that is newer than " +
		"the one named in tablestatus: a failed change left it, or tablestatus is an older version, and deleted rows " +
		"have reappeared."},
	{Code: "carbon.update.null", Severity: region.Warning, Help: "The update status that tablestatus names is the " +
		"JSON null: an update of no rows by an earlier version of stoa wrote it. No row is lost, but CarbonData " +
		"fails to read the table. The next change makes it readable again, such as stoa clean."},
	{Code: "carbon.utf8", Severity: region.Note, Help: "A string is not UTF-8. Its bytes are kept unchanged."},
}

// DictionaryCodes are the findings about dictionaries.
var DictionaryCodes = check.Codes{
	{Code: "carbon.dict.counts", Severity: region.Error, Help: "The number of chunks and values in a dictionary " +
		"differs from its metadata for a load. The codes of that load and of later ones are not trusted."},
	{Code: "carbon.dict.cut", Severity: region.Error, Help: "A dictionary ends before the end offset in its " +
		"metadata. The codes after its end have lost their values."},
	{Code: "carbon.dict.damaged", Severity: region.Error, Help: "A dictionary cannot be read beyond some offset. The " +
		"codes after it have lost their values."},
	{Code: "carbon.dict.missing", Severity: region.Error, Help: "The dictionary of a column is not in the " +
		"table's Metadata directory: the column's codes have lost their values. Other columns do not need it."},
	{Code: "carbon.dict.null", Severity: region.Warning, Help: "The first value of a dictionary is not the text that " +
		"represents null. Code 1 is still read as null, as by CarbonData."},
	{Code: "carbon.dict.twice", Severity: region.Warning, Help: "A dictionary has the same value under two codes. " +
		"CarbonData's filters find the rows of only one of them."},
	{Code: "carbon.dict.unfinished", Severity: region.Warning, Help: "A dictionary continues after the last load " +
		"that its metadata names: a load did not finish, or is still running. No data uses these codes."},
	{Code: "carbon.dictmeta.damaged", Severity: region.Warning, Help: "The metadata of a dictionary cannot be " +
		"read, or contradicts itself. All complete chunks of the dictionary are used."},
	{Code: "carbon.dictmeta.missing", Severity: region.Warning,
		Help: "A dictionary has no metadata. All its complete chunks are used."},
	{Code: "carbon.sortindex.damaged", Severity: region.Warning, Help: "A sort index cannot be read, or its two " +
		"lists are not each other's inverse. The values are sorted instead."},
	{Code: "carbon.sortindex.missing", Severity: region.Note, Help: "There is no sort index for a dictionary of this " +
		"size. The values are sorted instead."},
	{Code: "carbon.sortindex.order", Severity: region.Warning, Help: "A sort index does not list the codes in the " +
		"order of their values. CarbonData's range filters miss rows; stoa sorts the values instead."},
}
