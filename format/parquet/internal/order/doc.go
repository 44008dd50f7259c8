// Package order views the values of a leaf in Arrow arrays, and compares rows by the columns that a row group is sorted
// by, for verify and the writer.
package order
