// Package table is a table of data files, read: its schema and status, segments, partitions, deleted rows, dictionaries
// and indexes as tables, and how a damaged table is put together again.
package table
