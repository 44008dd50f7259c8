// Package dict is the global dictionary of a column: .dict, .dictmeta and .sortindex, read, asked, and written.
package dict
