// Package table reads a table of tablets. state.go has its types; load.go opens rowsets and reads the log; column.go,
// overlay.go and narrow.go serve scans; damaged values are taken from twins (replica.go), indexes and other replicas
// (fill.go).
package table
