// Package status is what a table says of itself in JSON: tablestatus with its entries, update statuses, segment files,
// the names of data files, and the locks under which they are changed.
package status
