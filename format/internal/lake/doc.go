// Package lake is what the formats of lakes share: tables whose rows lie in Parquet files, and whose catalogue says
// which these are.
//
// Writing: Rules say which types a catalogue has, Cast brings values there, Writer divides the rows by size and by
// partition and gives what the catalogue is to say of each file. Reading: Table is a format.Reader over files whose
// columns are found by id or by name, with values of partitions, deleted rows, and types that have become wider since.
package lake
