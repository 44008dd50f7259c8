// Package order sees the values of a leaf in Arrow arrays, and compares rows by the columns that a row group is
// sorted by: verify and the writer hold rows against that.
package order
