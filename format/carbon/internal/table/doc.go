// Package table reads a table of data files: its schema and status, segments, partitions, deleted rows, dictionaries
// and indexes as tables. Open takes whatever place was named, a managed table or a directory of files (ReadFolder);
// RecoverTable puts a damaged one together again.
//
// What surprises newcomers: a segment's files are found through its segment file and index files, not by listing, and
// only tablestatus says which segments count; deleted rows are an overlay of positions, whose file names carry times
// that must fit the update status.
package table
