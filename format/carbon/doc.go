// Package carbon is Apache CarbonData: tables of the formats 1, 2 and 3, with schema, status, segments,
// dictionaries and deleted rows, read, written, changed, verified, described and recovered.
//
// The byte tables are in docs/formats/carbon.md. Packages, each of which imports only those above it in this list:
//
//	internal/layout     Thrift messages, Java objects, index files: parsed and written
//	internal/schema     columns: their tree, types, constants; options of writers
//	internal/status     tablestatus, update status, segment files, locks
//	internal/dict       global dictionaries
//	internal/page       one page, decoded and encoded
//	internal/datafile   one data file, read and written
//	internal/table      a table, read
//	internal/since      what changed in a table since a moment
//	internal/change     a table, changed
//	internal/mixed      tables that also have segments of Parquet
package carbon
