package codes

import (
	"cmp"
	"slices"

	"stoa/internal/check"
	"stoa/internal/sorted"
	"stoa/region"
)

// tableCodes are the findings about tables and tablets, sorted by code.
var tableCodes = check.Codes{
	{Code: "kudu.block.unclaimed", Severity: region.Error, Help: "Blocks have columns with rows, but no superblock " +
		"names them or lists them as orphaned. Either they belonged to a tablet whose superblock, log and consensus " +
		"metadata are lost, and its rows are in no table. Or a server was killed after a flush or a compaction had " +
		"written its blocks and before it wrote the superblock: then the rows are also in the tablet's log or its " +
		"older rowsets, and you can confirm that with unclaimed=true (kudu fs check --repair removes such blocks). " +
		"ls --unnamed lists the blocks, and --schema FILE reads them."},
	{Code: "kudu.block.unnamed", Severity: region.Note, Help: "No superblock names this block: it is left over from " +
		"a crash, or from a tablet whose superblock is lost."},
	{Code: "kudu.bloom.disagrees", Severity: region.Error, Help: "A rowset's bloom filter excludes keys that the " +
		"rowset has: look-ups would miss rows."},
	{Code: "kudu.carve.applied", Severity: region.Warning, Help: "Rowsets were assembled from blocks without a " +
		"superblock. Delta files are applied to the rowset that the numbers of their blocks, their rows, columns and " +
		"times tell. No superblock confirms it."},
	{Code: "kudu.carve.deltas", Severity: region.Error, Help: "Rowsets were assembled from blocks without a " +
		"superblock. A delta file is not applied, because it is damaged or its rowset is unknown: " +
		"rows that it deletes are in the output, and cells that it changes have older values."},
	{Code: "kudu.carve.left", Severity: region.Error, Help: "A block that no superblock names could not be " +
		"assigned to a rowset: no column fits, or several blocks fit. Or it cannot be read."},
	{Code: "kudu.carve.log", Severity: region.Error, Help: "Rowsets were assembled from blocks without a " +
		"superblock. The log of a tablet without a superblock is here and is not applied, because only the " +
		"superblock tells what of it had been flushed: rows that were not flushed are missing, and later changes too."},
	{Code: "kudu.carve.mixed", Severity: region.Error, Help: "Rowsets were assembled from blocks without a " +
		"superblock, and several tablets have lost theirs: rows of several tables, or the same rows of several " +
		"replicas, may be mixed. Give the directories of one server, and distinguish the tables by the content of " +
		"their columns."},
	{Code: "kudu.catalog.behind", Severity: region.Error, Help: "There are tablets of a table that the catalogue in " +
		"a master's directory does not list: the catalogue is incomplete, out of date, or another cluster's. It " +
		"cannot determine which tablets the table must have."},
	{Code: "kudu.catalog.damaged", Severity: region.Warning, Help: "The catalogue in a master's directory cannot be " +
		"read, so it cannot determine which tablets must exist."},
	{Code: "kudu.delta.damaged", Severity: region.Error, Help: "Deltas of a rowset cannot be applied: they are " +
		"damaged, change rows that the rowset does not have, or have values of another type. The rows that they " +
		"change are suspect; if the file is another rowset's, all rows of the rowset are suspect, because the " +
		"changes of the right file are unknown."},
	{Code: "kudu.delta.order", Severity: region.Error, Help: "A REDO file of a rowset, which leads from the stored " +
		"rows to later states, ends before an UNDO file of the same column, which leads to earlier ones: one of them " +
		"is not the file that the superblock names. Or the changes of a row go back in time in a REDO file, or " +
		"forward in an UNDO file. Values may be out of date."},
	{Code: "kudu.history.old", Severity: region.Warning, Help: "The snapshot is older than the history that Kudu " +
		"guarantees to keep. Rows that were deleted earlier and removed by a compaction leave no trace: they may be " +
		"missing."},
	{Code: "kudu.history.removed", Severity: region.Error, Help: "The snapshot is older than the remaining history " +
		"of a rowset, and was read nevertheless (partial=true, --partial): later rows and values are shown."},
	{Code: "kudu.index.disagrees", Severity: region.Error,
		Help: "The keys in a rowset's ad-hoc index differ from its key columns: look-ups would miss rows."},
	{Code: "kudu.keys.damaged", Severity: region.Error,
		Help: "The keys of a rowset cannot be checked against its index and bloom filter: one of them is unreadable."},
	{Code: "kudu.keys.order", Severity: region.Error,
		Help: "The keys of a rowset do not ascend: look-ups miss rows, and merging gives the wrong order."},
	{Code: "kudu.keys.partition", Severity: region.Error, Help: "A row's key belongs to another hash bucket or range " +
		"than its tablet: queries that prune partitions miss it. Files of the rowset may be another tablet's, or the " +
		"tablet's metadata may be."},
	{Code: "kudu.keys.range", Severity: region.Error, Help: "The first or the last key of a rowset differs from its " +
		"metadata: readers that prune by it skip rowsets."},
	{Code: "kudu.read", Severity: region.Error, Help: "Reading a file or directory failed, so it was not checked."},
	{Code: "kudu.replica.behind", Severity: region.Error, Help: "The replica of a tablet that is read lacks " +
		"operations that another replica has, but that one is damaged or incomplete; or its server was evicted from " +
		"the tablet: rows may be out of date."},
	{Code: "kudu.replica.differs", Severity: region.Error, Help: "Two copies of one server have blocks with the same " +
		"id and different content, and nothing in either is damaged: one of them is not the server's, and its rows " +
		"may be those that are read. Or replicas with the same latest operation have different numbers of rows."},
	{Code: "kudu.rowset.damaged", Severity: region.Error, Help: "A tablet's rowsets cannot be opened for checking."},
	{Code: "kudu.rowset.live", Severity: region.Error, Help: "The number of live rows of a rowset differs from its " +
		"superblock: its REDO files are another rowset's, or from another time. The changes of the right files are " +
		"unknown: all rows of a rowset that has REDO files are suspect."},
	{Code: "kudu.rowset.uneven", Severity: region.Error, Help: "A block of a rowset is not the one that the " +
		"superblock names: its number of rows differs from the other blocks', its type, encoding or compression " +
		"from the column's, or it is another kind of file. Another file may have taken its name."},
	{Code: "kudu.snapshot.outside", Severity: region.Warning, Help: "A snapshot (--at) is before the first operation " +
		"of its table, or after the last one in these directories, and was read nevertheless (partial=true, " +
		"--partial): it has no rows, or those of the latest state in these directories, which may differ from the " +
		"state at that time."},
	{Code: "kudu.table.incomplete", Severity: region.Error, Help: "Part of a table, or of a tablet whose table is " +
		"unknown, is missing: a tablet that must exist is missing, or none of its replicas is intact. stoa census " +
		"lists the state of each replica."},
	{Code: "kudu.table.names", Severity: region.Warning, Help: "A superblock names its tablet's table otherwise than " +
		"the superblocks of other tablets and replicas with the same version of the schema do."},
	{Code: "kudu.tablet.missing", Severity: region.Error, Help: "A tablet that must exist is in none of the given " +
		"directories, or only as a tombstone or an unfinished copy: its rows are not read."},
	{Code: "kudu.tablet.rebuilt", Severity: region.Error, Help: "A tablet has no readable superblock, or has lost " +
		"blocks. Its rows are those that the operations in its log produce, or, if the log does not begin with the " +
		"tablet's first operation, those of the blocks that no superblock names and that fit its schema; the message " +
		"tells which."},
	{Code: "kudu.tablet.tombstone", Severity: region.Note,
		Help: "A tablet was deleted from this server; only its votes are left. Another server has, or had, its rows."},
	{Code: "kudu.unsupported", Severity: region.Error,
		Help: "The directories may be intact, but use a feature that is not supported; the message names it."},
}

// OfMetadata are the findings about a protobuf container on its own.
var OfMetadata = check.Codes{
	{Code: "kudu.metadata.damaged", Severity: region.Error, Help: "A protobuf container, or a record in it, is " +
		"damaged. The consequences are reported when its directory is verified."},
}

// Codes are all findings of this package, sorted by code. Verify also reports those of blocks: see package cfile.
var Codes = func() check.Codes {
	all := slices.Concat(fsCodes, tableCodes, OfLogs, OfMetadata)
	sorted.By(all, func(a, b region.CodeDoc) int { return cmp.Compare(a.Code, b.Code) })
	return all
}()
