// Package status reads and writes a table's metadata in JSON: tablestatus with its entries, update statuses and segment
// files; parses the names of data files; and takes the locks under which all these are changed. Entries keep keys that
// this package does not know, so that a table of a later CarbonData release loses nothing when stoa changes it.
package status
