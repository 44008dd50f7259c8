// Package datafile reads and writes one data file: footer, blocklets, column chunks and their bounds, and the row
// streams of streaming segments. OpenFile opens one of any format version and RecoverFile one whose footer is lost;
// TaskWriter writes one through NewSorter's sort.
//
// CarbonData keeps no checksums, so what one structure says is compared with every other that says the same, and an
// offset is trusted only inside the section that it points into. The package knows no table: what deletes and
// dictionaries do to rows is up to the packages above.
package datafile
