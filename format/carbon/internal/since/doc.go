// Package since reads what changed in a table since a moment: the rows that were deleted and those that were added,
// each with a column that says which. An updated row is both.
//
// The moment and now are compared by the times in tablestatus and its history, by the update statuses of both, and by
// the segment files of both. Rows of data files that both have are neither read nor reported. If clean removed files
// that are needed, that is an error: an incomplete answer would leave a copy of the table wrong.
//
// It also reads the rows of a moment, by the same times.
package since
