// Package mixed opens tables that also have Parquet segments, added by ALTER TABLE … ADD SEGMENT. Other files are
// opened by package table, and both kinds return rows in the table's schema. The package is a layer between package
// table and the format, and passes everything else on to package table. It also lists what writers wrote to directories
// that have no table.
//
// Parquet has no column ids. Its columns are found by name, ignoring case, as CarbonData under Spark does. A column
// that a file lacks is null there, even if the table has a default for it.
package mixed
