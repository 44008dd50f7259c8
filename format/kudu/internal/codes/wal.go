package codes

import (
	"stoa/internal/check"
	"stoa/region"
)

// OfLogs are the findings about a tablet's write-ahead log, sorted by code.
var OfLogs = check.Codes{
	{Code: "kudu.wal.change.lost", Severity: region.Error, Help: "A change that is only in the log cannot be " +
		"applied: its row is missing, or cannot be found because of damage."},
	{Code: "kudu.wal.damaged", Severity: region.Error,
		Help: "Part of a log cannot be read. The operations in it are lost, unless they had been flushed."},
	{Code: "kudu.wal.deleted", Severity: region.Error, Help: "A tablet has no log, although the server's log " +
		"directory was given: the log was deleted. Changes that had not been flushed are lost; their number is " +
		"unknown."},
	{Code: "kudu.wal.footer", Severity: region.Warning,
		Help: "The footer of a log segment cannot be read, or contradicts the segment."},
	{Code: "kudu.wal.gap", Severity: region.Error,
		Help: "Operations are missing from the middle of the log: indexes are not consecutive. Or the log is of a " +
			"later state of the tablet than its superblock, and the operations between them are not here: then the " +
			"log is not used."},
	{Code: "kudu.wal.header", Severity: region.Error, Help: "The header of a log segment cannot be read, or names " +
		"another segment. Operations that can be found in the segment are used, unless it is another tablet's."},
	{Code: "kudu.wal.missing", Severity: region.Warning, Help: "The server's log directory was not given, so a " +
		"tablet has no log. Changes that had not been flushed are not read; their number is unknown."},
	{Code: "kudu.wal.op.bad", Severity: region.Error,
		Help: "An operation in the log is intact but cannot be parsed. It is left out."},
	{Code: "kudu.wal.orphan", Severity: region.Error, Help: "The log commits an operation that it does not contain: " +
		"the operation was in a part that is missing. Its changes had not been flushed, and are lost."},
	{Code: "kudu.wal.schema", Severity: region.Error, Help: "The log continues with a newer schema than the " +
		"superblock's: the server stopped between writing the two. The table is read with the superblock's schema; " +
		"cells of columns that it lacks are not read."},
	{Code: "kudu.wal.segment.missing", Severity: region.Error, Help: "A segment is missing from the middle of a " +
		"log. The operations in it are lost, unless they had been flushed."},
	{Code: "kudu.wal.short", Severity: region.Error, Help: "The log ends before the latest flushed change: its end " +
		"is missing, or it is from another time than the rowsets. Changes that had not been flushed are out of date " +
		"or lost."},
	{Code: "kudu.wal.torn", Severity: region.Warning, Help: "The log ends in an incomplete batch, as after a crash, " +
		"or in a copy made while the server ran. Kudu also ignores it."},
	{Code: "kudu.wal.txn.open", Severity: region.Warning,
		Help: "The log holds rows of a transaction that was neither committed nor aborted. They are left out."},
	{Code: "kudu.wal.uncommitted", Severity: region.Warning, Help: "The log ends with operations that were received " +
		"but neither committed nor aborted. They are left out."},
}
