// Package dict reads and writes the global dictionary of a column: .dict has the values in the order of their codes,
// .dictmeta which codes and bytes each load appended, .sortindex the rank of each code. Only the values up to the last
// load in .dictmeta count: what follows belongs to a load that did not finish.
package dict
