package codes

import (
	"cmp"
	"slices"

	"stoa/internal/check"
	"stoa/region"
)

// tableCodes are the kinds of findings about tables and tablets, by name.
var tableCodes = check.Codes{
	{Code: "kudu.block.unclaimed", Severity: region.Error, Help: "Blocks hold columns with rows, and no " +
		"superblock names them or lists them as orphaned. They are what is left of a tablet whose superblock, " +
		"log and consensus metadata are gone: its rows are in no table. Or a server was killed when a flush or " +
		"a compaction had written its blocks and not yet its superblock: then the rows are in the tablet's log, " +
		"or in its older rowsets, too, and unclaimed=true says that this is known (kudu fs check --repair removes " +
		"such blocks). ls --unnamed lists the blocks, and --schema FILE reads them."},
	{Code: "kudu.block.unnamed", Severity: region.Note,
		Help: "A block that no superblock names: a leftover of a crash, or of a tablet whose superblock is lost."},
	{Code: "kudu.bloom.disagrees", Severity: region.Error,
		Help: "A rowset's bloom file says of keys that it has that it does not have them: look-ups would miss rows."},
	{Code: "kudu.carve.deltas", Severity: region.Warning, Help: "Blocks were put together without a superblock. " +
		"Changes of their rows are not applied, as nothing says to which rows they belong: rows are as they " +
		"were when they were written to the blocks, and deleted ones are among them."},
	{Code: "kudu.carve.left", Severity: region.Warning,
		Help: "A block that no superblock names could not be put into a rowset: no schema fits, or several blocks do."},
	{Code: "kudu.carve.mixed", Severity: region.Error, Help: "Blocks were put together without a superblock, " +
		"and several tablets have lost theirs: rows of several tables, or the same rows of several replicas, " +
		"may stand among each other. Give the directories of one server, and tell the tables apart by what is " +
		"in their columns."},
	{Code: "kudu.catalog.behind", Severity: region.Error, Help: "Tablets are here of a table that the catalogue " +
		"in a master's directory does not know: the catalogue is not whole, or of another cluster. Which " +
		"tablets there must be is not known from it."},
	{Code: "kudu.catalog.damaged", Severity: region.Warning,
		Help: "The catalogue in a master's directory cannot be read: which tablets there must be is not known " +
			"from it."},
	{Code: "kudu.delta.damaged", Severity: region.Error, Help: "Changes of a rowset cannot be applied: they are " +
		"damaged, of rows that it does not have, or values of another type. The rows that they touch are " +
		"suspect; if the file is another rowset's, all rows of the rowset are, as nobody knows what the right " +
		"one changes."},
	{Code: "kudu.delta.order", Severity: region.Error, Help: "A REDO file of a rowset, which goes forward from " +
		"the rows as they are stored, ends before an UNDO file of the same column, which goes back: one is not " +
		"what its superblock says. Or the changes of a row go back in time in a REDO file, or forward in an " +
		"UNDO file. Values may be old."},
	{Code: "kudu.history.old", Severity: region.Warning, Help: "A snapshot is older than the history that Kudu " +
		"promises to keep. Rows that were deleted before, and removed by a compaction, leave no trace: they may " +
		"be missing."},
	{Code: "kudu.history.removed", Severity: region.Error, Help: "A snapshot is older than what is left of a " +
		"rowset's history, and was read nevertheless (partial=true, --partial): rows and values that came later " +
		"are shown."},
	{Code: "kudu.index.disagrees", Severity: region.Error,
		Help: "A rowset's ad-hoc index has other keys than its key columns: look-ups would miss rows."},
	{Code: "kudu.keys.damaged", Severity: region.Error,
		Help: "The keys of a rowset cannot be compared with its index and bloom file, as one of them cannot be read."},
	{Code: "kudu.keys.order", Severity: region.Error,
		Help: "The keys of a rowset do not rise: look-ups miss rows, and merging gives a wrong order."},
	{Code: "kudu.keys.partition", Severity: region.Error, Help: "A row lies in a tablet whose hash bucket or " +
		"range is another one: queries that go by partitions miss it. Files of the rowset may be another " +
		"tablet's, or the tablet's metadata may be."},
	{Code: "kudu.keys.range", Severity: region.Error, Help: "The first or the last key of a rowset is another " +
		"one than its metadata says: readers that use it skip rowsets."},
	{Code: "kudu.read", Severity: region.Error, Help: "Something could not be read from where it is kept."},
	{Code: "kudu.replica.behind", Severity: region.Error, Help: "The replica of a tablet that is read did not " +
		"see all operations that another one saw, which cannot be read as it is: rows may be old."},
	{Code: "kudu.rowset.damaged", Severity: region.Error, Help: "A tablet's rowsets cannot be looked at."},
	{Code: "kudu.rowset.live", Severity: region.Error, Help: "A rowset has another number of live rows than its " +
		"superblock says: its REDO files are not those that belong to it, or of another time. What the right " +
		"ones change nobody knows: all rows of the rowset are suspect, if it has such files."},
	{Code: "kudu.rowset.uneven", Severity: region.Error, Help: "A block of a rowset is not the one that the " +
		"superblock names: it has another number of rows than the others, or values of another type, encoding " +
		"or compression than the column, or is another kind of file. Perhaps another file stands under its name."},
	{Code: "kudu.snapshot.outside", Severity: region.Warning, Help: "A snapshot (--at) is before the first " +
		"operation of its table, or after the last that the directories know of, and was read nevertheless " +
		"(partial=true, --partial): it has no rows, or those of the latest state, which may not be those of " +
		"that moment."},
	{Code: "kudu.table.incomplete", Severity: region.Error, Help: "What is here of a table, or of a tablet that is " +
		"not known to be one's, is not all: a part that must be somewhere is not, or no replica of a part is whole. " +
		"stoa census says of each what its replicas are."},
	{Code: "kudu.tablet.missing", Severity: region.Error, Help: "The partition schema says that there must be a " +
		"tablet which none of the given directories holds: its rows are not read."},
	{Code: "kudu.tablet.tombstone", Severity: region.Note,
		Help: "A tablet was deleted from this server; only its votes are left. Another server has, or had, its rows."},
	{Code: "kudu.unsupported", Severity: region.Error,
		Help: "The directories may be sound, but need something that is not known here; the message names it."},
}

// OfMetadata are the kinds of findings about a protobuf container by itself.
var OfMetadata = check.Codes{
	{Code: "kudu.metadata.damaged", Severity: region.Error, Help: "A protobuf container, or a record in it, " +
		"cannot be read as it should be. What follows from that is reported when its directory is verified."},
}

// Codes are all kinds of findings of this package. Verify reports those of blocks, too: see package cfile.
var Codes = func() check.Codes {
	all := slices.Concat(fsCodes, tableCodes, OfLogs, OfMetadata)
	slices.SortFunc(all, func(a, b region.CodeDoc) int { return cmp.Compare(a.Code, b.Code) })
	return all
}()
