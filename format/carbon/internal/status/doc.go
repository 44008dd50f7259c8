// Package status reads and writes what a table says of itself in JSON: tablestatus with its entries, update statuses,
// segment files, and the names of data files; and takes the locks under which they are changed. Entries keep the keys
// that this package does not know, so that a table of a newer CarbonData loses nothing when it is changed here.
package status
