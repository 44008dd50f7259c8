// Package soak is a test that goes on for as long as it is told to: random tables go round a ring of all
// formats that are written, with random settings of the writers; every file is verified, compared, asked by
// filters, in splits and by diff, then damaged (bits, runs of bytes, cuts, bytes after it, files that are
// gone, exchanged or another table's), verified again, recovered and compared: whatever lies wholly in what was
// not touched has to come back. Of each table a CarbonData table is made, too, which is loaded, changed in
// place, compacted and damaged; and a backup as Kudu has them.
//
//	STOA_SOAK=20m go test ./internal/soak -v -timeout 0          # prints seed and operations
//	STOA_SOAK=1m STOA_SEED=7 go test ./internal/soak -v          # the same tables again
//	STOA_KEEP=DIR                                                # the files of what failed are kept there
package soak
