// Package order views the values of a leaf in Arrow arrays and compares rows by the sorting columns of a row group, for
// verify and the writer.
package order
