// Package lake is shared by the lake formats: tables whose rows are in Parquet files, and whose catalogue lists these
// files.
//
// Writing: Rules state which types a catalogue supports, Cast converts values to these, Writer divides the rows by size
// and by partition and returns the facts about each file for the catalogue. Reading: Table is a format.Reader over
// files whose columns are found by id or by name, with partition values, deleted rows, and types that have since become
// wider.
package lake
