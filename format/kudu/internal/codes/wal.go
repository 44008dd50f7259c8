package codes

import (
	"stoa/internal/check"
	"stoa/region"
)

// OfLogs are the kinds of findings about a tablet's write-ahead log, by name.
var OfLogs = check.Codes{
	{Code: "kudu.wal.change.lost", Severity: region.Error, Help: "A change that is only in the log cannot be " +
		"applied: the row that it is about is not there, or cannot be found because of damage."},
	{Code: "kudu.wal.damaged", Severity: region.Error,
		Help: "A part of a log cannot be read. The operations in it are lost, unless they were flushed before."},
	{Code: "kudu.wal.deleted", Severity: region.Error, Help: "A tablet has no log, though the directory of its " +
		"server's logs is there: it was deleted. What was not flushed is lost; how much that was, nothing tells."},
	{Code: "kudu.wal.footer", Severity: region.Warning,
		Help: "The footer of a log's segment cannot be read, or contradicts the segment."},
	{Code: "kudu.wal.gap", Severity: region.Error,
		Help: "Operations are missing between two of the log: their numbers are not consecutive."},
	{Code: "kudu.wal.header", Severity: region.Error, Help: "The header of a log's segment cannot be read, or " +
		"says that it is another one. Operations that can be found in it are used."},
	{Code: "kudu.wal.missing", Severity: region.Warning, Help: "The directory of the server's logs is not here, " +
		"so a tablet has none. What was not flushed is not read; how much that was, nothing tells."},
	{Code: "kudu.wal.op.bad", Severity: region.Error,
		Help: "An operation in the log is whole, and cannot be understood. It is left out."},
	{Code: "kudu.wal.orphan", Severity: region.Error, Help: "The log says that an operation was applied, which " +
		"it does not hold: it was in a part that is missing. Its changes were not flushed, and are lost."},
	{Code: "kudu.wal.schema", Severity: region.Error, Help: "The log goes on with a newer schema than the " +
		"superblock has: the server stopped between the two. The table is read with the superblock's; cells of " +
		"columns that it does not know are not read."},
	{Code: "kudu.wal.segment.missing", Severity: region.Error, Help: "A segment is missing between two of a " +
		"log. The operations in it are lost, unless they were flushed before."},
	{Code: "kudu.wal.short", Severity: region.Error, Help: "The log ends before the latest change that was " +
		"flushed: its end is missing, or it is of another time than the rowsets. What was not flushed is old, or " +
		"lost."},
	{Code: "kudu.wal.torn", Severity: region.Warning, Help: "The log ends in a batch that was not written to " +
		"its end: what a crash leaves, or a copy made while the server ran. Kudu leaves it out, too."},
	{Code: "kudu.wal.txn.open", Severity: region.Warning,
		Help: "Rows of a transaction that was neither committed nor aborted are in the log. They are left out."},
	{Code: "kudu.wal.uncommitted", Severity: region.Warning, Help: "The log ends with operations that were " +
		"received, and of which it does not say whether they were applied. They are left out."},
}
