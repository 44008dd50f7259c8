// Package carbon is Apache CarbonData: tables of the formats 1, 2 and 3, with schema, status, segments,
// dictionaries and deleted rows, read, written, changed, verified, described and recovered.
//
// The byte tables are in docs/formats/carbon.md. The rooms below, each of which knows only those above it in
// this list:
//
//	internal/layout     thrift messages, Java objects, index files: bytes both ways
//	internal/schema     columns: their tree, types, constants; options of writers
//	internal/status     tablestatus, update status, segment files, locks
//	internal/dict       global dictionaries
//	internal/page       one page, both ways
//	internal/datafile   one data file, both ways
//	internal/table      a table, read
//	internal/change     a table, changed
package carbon
