// Package datafile is one data file, both ways: footer, blocklets, column chunks, bounds, row streams; the writer with
// its sort; and what of a damaged file can be found again.
package datafile
