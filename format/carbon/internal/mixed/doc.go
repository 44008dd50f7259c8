// Package mixed opens tables of which some segments are Parquet, added by ALTER TABLE … ADD SEGMENT: the other files
// are opened by package table, and both give their rows by the table's schema. It stands between package table and the
// format, and passes everything else on to package table.
//
// Parquet has no column ids. Its columns are found by their names, whatever their case, as CarbonData under Spark does
// it: a column that a file lacks is null in it, also where the table has a default.
package mixed
