// Package soak is a test of any duration: random tables are converted through all writable formats, with random
// settings of the writers. Every file is verified, compared, and read with filters, in splits and by diff; then it is
// damaged (flipped bits, overwritten runs of bytes, truncation, trailing bytes, missing files, exchanged files, files
// of other tables), verified again, recovered and compared: every row that lies completely in undamaged parts must be
// recovered. Each table is also made a CarbonData table, which is loaded, updated, compacted and damaged, and a backup
// in the form of Kudu's.
//
//	STOA_SOAK=20m go test ./internal/soak -v -timeout 0          # prints seed and operations
//	STOA_SOAK=1m STOA_SEED=7 go test ./internal/soak -v          # the same tables again
//	STOA_KEEP=DIR                                                # keeps the files of tables that failed
package soak
