package layout

import (
	"slices"
	"strings"

	"stoa/internal/check"
	"stoa/region"
)

// Codes are all kinds of findings, by name. Carbon keeps no checksums: what can be noticed is what contradicts itself.
var Codes check.Codes = slices.SortedFunc(slices.Values(append(tableCodes, DictionaryCodes...)),
	func(a, b region.CodeDoc) int { return strings.Compare(a.Code, b.Code) })

// tableCodes are the findings about everything but dictionaries.
var tableCodes = []region.CodeDoc{
	{Code: "carbon.blocklet.minmax", Severity: region.Error, Help: "A value lies outside the smallest and the " +
		"largest value that footer or index keep of the blocklet: queries that filter by the column overlook rows."},
	{Code: "carbon.chunk.damaged", Severity: region.Error,
		Help: "The metadata of a column chunk cannot be read: the column is lost in this blocklet."},
	{Code: "carbon.coverage.gap", Severity: region.Warning, Help: "Bytes that no structure of a file of rows " +
		"claims: a streaming writer was interrupted. In a file of columns they are an error of the footer."},
	{Code: "carbon.delete.damaged", Severity: region.Error, Help: "A delete delta cannot be read, or does not " +
		"fit the update status (another block, another number of rows, a block without a data file): rows that " +
		"were deleted would come back."},
	{Code: "carbon.delete.range", Severity: region.Error,
		Help: "A delete delta deletes rows that the page does not have. It may belong to another file."},
	{Code: "carbon.delete.unnamed", Severity: region.Warning, Help: "A delete delta lies beside a block, and is " +
		"newer than all that the update status names of it: a delete that failed has left it, or the update " +
		"status is one of an earlier time, and deleted rows have come back."},
	{Code: "carbon.file.leftover", Severity: region.Note,
		Help: "A data file that no index of its segment names: what a failed load left, most likely. It is not read."},
	{Code: "carbon.file.twice", Severity: region.Warning, Help: "A data file without an index file has the same " +
		"bytes as another one of the table: the same rows were loaded twice, or it was copied over another " +
		"file, whose rows are lost. Without the index nothing says which."},
	{Code: "carbon.footer.damaged", Severity: region.Error, Help: "The footer of a data file cannot be read: " +
		"the file is cut, or its end is overwritten. Recover finds the blocklets by the index file, or one " +
		"after the other."},
	{Code: "carbon.header.damaged", Severity: region.Error,
		Help: "The header of a data file cannot be read. It holds the columns."},
	{Code: "carbon.index.damaged", Severity: region.Error, Help: "An index file cannot be read. The footers of " +
		"the data files know all that it knows; Carbon itself does not read a segment without it."},
	{Code: "carbon.index.disagree", Severity: region.Error, Help: "An index file says something else of a data " +
		"file than its footer does: queries that use it overlook rows."},
	{Code: "carbon.index.missing", Severity: region.Warning,
		Help: "A segment has no index file. Stoa reads its data files; Carbon itself does not."},
	{Code: "carbon.leftover", Severity: region.Note, Help: "Files that were of the table and are not read any " +
		"more: earlier update statuses, delete deltas that others stand for, segments that were compacted or " +
		"deleted or never finished. Carbon removes them when the table is cleaned, as stoa clean does."},
	{Code: "carbon.page.count", Severity: region.Error,
		Help: "A page does not have as many values as the footer says, or a list not as many items."},
	{Code: "carbon.page.damaged", Severity: region.Error,
		Help: "A page cannot be decoded: it contradicts its own encoding. Without checksums this is how damage shows."},
	{Code: "carbon.page.minmax", Severity: region.Error,
		Help: "A value lies outside the smallest and the largest value that are kept of the page. Either may be " +
			"damaged."},
	{Code: "carbon.read", Severity: region.Error, Help: "Bytes could not be read from where they are kept."},
	{Code: "carbon.recovered", Severity: region.Note, Help: "Recover found blocklets without the footer."},
	{Code: "carbon.rows.lost", Severity: region.Error, Help: "Recover did not find these blocklets whole."},
	{Code: "carbon.schema.damaged", Severity: region.Error,
		Help: "The schema file of a table cannot be read. The data files know the columns they have."},
	{Code: "carbon.segment.damaged", Severity: region.Error, Help: "Recover found a segment file " +
		"(Metadata/segments) damaged, or that of a segment of a partitioned table missing, and went by " +
		"directories. Only the segment file says which partitions were dropped: their files stay until the " +
		"table is cleaned, so their rows may have come back. Partitions that the damaged file still calls " +
		"dropped are left out."},
	{Code: "carbon.segment.file", Severity: region.Warning, Help: "A segment file (Metadata/segments) that " +
		"tablestatus names is missing. Stoa reads the directory of the segment. Those of a partitioned table " +
		"have none: there it is an error, and `stoa recover` looks for their files in the directories of the " +
		"partitions (carbon.segment.damaged)."},
	{Code: "carbon.segment.minmax", Severity: region.Error, Help: "The smallest or largest value that a segment " +
		"file keeps of a column is not that of the segment, or cannot be read, or the column is none of the " +
		"table: queries that filter by it overlook rows. It may be of another segment or table."},
	{Code: "carbon.segment.missing", Severity: region.Error, Help: "The status names a segment, or an index a " +
		"data file, that is not there or cannot be read, or the data files are fewer bytes than the status says " +
		"and no index says which there were."},
	{Code: "carbon.segment.size", Severity: region.Warning, Help: "The data files or the index files of a " +
		"segment are not as many bytes as tablestatus says: files were exchanged or added behind its back, the " +
		"status is of another time, or a program changed files without noting it."},
	{Code: "carbon.segment.unnamed", Severity: region.Warning, Help: "A segment has data files, but neither " +
		"tablestatus nor its history knows it: its rows are not read. A compaction ended before it could name " +
		"its segment, or a load of a release before 1.3 did; or tablestatus is one of an earlier time, put back " +
		"by somebody. --segment N reads it."},
	{Code: "carbon.segment.vanished", Severity: region.Error, Help: "A segment has data files, and tablestatus, " +
		"which must have had an entry for it, has none: a number up to the highest one was given to a load, which " +
		"has its entry before its first file. So bytes between two entries were lost, or tablestatus is of an " +
		"earlier time. Whether its rows count nobody knows: they are not read (--segment N reads them)."},
	{Code: "carbon.status.damaged", Severity: region.Error, Help: "tablestatus, or the update status that it " +
		"names, cannot be read, or has a state or member that it cannot have: nobody knows which segments and " +
		"rows count."},
	{Code: "carbon.unsupported", Severity: region.Error,
		Help: "The file may be sound, but needs something that is not known here; the message names it."},
	{Code: "carbon.update.newer", Severity: region.Warning, Help: "An update status lies in Metadata that is " +
		"newer than the one tablestatus names: a change that failed has left it, or tablestatus is one of an " +
		"earlier time, and rows that were deleted have come back."},
	{Code: "carbon.utf8", Severity: region.Note, Help: "A string is not UTF-8. The bytes are kept as they are."},
}

// DictionaryCodes are the findings about dictionaries.
var DictionaryCodes = check.Codes{
	{Code: "carbon.dict.counts", Severity: region.Error, Help: "A dictionary does not hold as many chunks and " +
		"values as its metadata says of a load. The codes of that load and of later ones are not trusted."},
	{Code: "carbon.dict.cut", Severity: region.Error,
		Help: "A dictionary ends before its metadata says. The codes after the cut have lost their values."},
	{Code: "carbon.dict.damaged", Severity: region.Error,
		Help: "A dictionary cannot be read from some place on. The codes after it have lost their values."},
	{Code: "carbon.dict.missing", Severity: region.Error, Help: "The dictionary of a column is not in the " +
		"table's Metadata directory: the column's codes have lost their values. Other columns do not need it."},
	{Code: "carbon.dict.null", Severity: region.Warning, Help: "The first value of a dictionary is not the text " +
		"that stands for null. Code 1 is read as null all the same, as CarbonData does."},
	{Code: "carbon.dict.twice", Severity: region.Warning,
		Help: "A dictionary has a value under two codes. CarbonData's filters find the rows of one of them only."},
	{Code: "carbon.dict.unfinished", Severity: region.Warning, Help: "A dictionary continues after the last load " +
		"that its metadata names: a load did not finish, or is under way. No data uses these codes."},
	{Code: "carbon.dictmeta.damaged", Severity: region.Warning, Help: "The metadata of a dictionary cannot be " +
		"read, or does not add up. All whole chunks of the dictionary are taken."},
	{Code: "carbon.dictmeta.missing", Severity: region.Warning,
		Help: "A dictionary has no metadata. All its whole chunks are taken."},
	{Code: "carbon.sortindex.damaged", Severity: region.Warning, Help: "A sort index cannot be read, or its two " +
		"lists are not each other's inverse. The values are sorted instead."},
	{Code: "carbon.sortindex.missing", Severity: region.Note,
		Help: "No sort index belongs to a dictionary of this size. The values are sorted instead."},
	{Code: "carbon.sortindex.order", Severity: region.Warning, Help: "A sort index does not list the codes in " +
		"the order of their values. CarbonData's range filters miss rows; here the values are sorted instead."},
}
