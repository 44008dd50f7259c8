//go:build race

package main

import "testing"

// TestScriptsOfManyTables runs those scripts in which several tables are read or written at a time. With the race
// detector all scripts take eight minutes.
func TestScriptsOfManyTables(t *testing.T) {
	scripts(t, "convert_all", "encrypted_tables", "migrate", "partitions", "plan", "rescue", "roots", "several",
		"spare_sources")
}
