// Package arrays concatenates, slices and selects entries of Arrow arrays of every type of nested columns, including
// unions.
package arrays
