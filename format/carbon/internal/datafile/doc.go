// Package datafile reads and writes one data file: footer, blocklets, column chunks and their bounds, and the row
// streams of streaming segments. OpenFile opens a file of any format version, RecoverFile one whose footer is lost.
// TaskWriter writes files, and Sorter sorts rows for it.
//
// CarbonData has no checksums, so whatever two structures record redundantly is compared, and an offset is trusted only
// within the section that it points into. The package knows nothing of tables: deletes and partitions are up to the
// packages above.
package datafile
