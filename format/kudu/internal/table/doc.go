// Package table is a table of tablets, read. state.go has what is known of one; load.go looks at rowsets and reads
// the log; column.go, overlay.go and narrow.go are what a scan asks; values that are damaged are looked for in twins
// (replica.go), indexes and other replicas (fill.go).
package table
