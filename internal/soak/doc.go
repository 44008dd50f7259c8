// Package soak is a test that goes on for as long as it is told to: random tables go round a ring of all formats that are written,
// with random settings of the writers; every file is verified, damaged, verified again, recovered and compared. Of each table a CarbonData table
// is made, too, which is loaded, changed in place, compacted and damaged; and a backup as Kudu has them.
//
//	STOA_SOAK=20m go test ./internal/soak -v -timeout 0          # prints seed and operations
//	STOA_SOAK=1m STOA_SEED=7 go test ./internal/soak -v          # the same tables again
package soak
