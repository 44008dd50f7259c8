// Package dict is the global dictionary of a column: .dict has the values, in the order of their codes, .dictmeta
// says how far each load wrote, and .sortindex ranks the codes. Only the values up to the last finished load count:
// what follows is the rest of a load that was not finished.
package dict
