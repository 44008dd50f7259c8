package cli

import (
	"os"
	"path/filepath"
	"strings"
)

// Versions returns how many versions the tables of a lake in a local directory have: metadata files of Iceberg, and
// commits of Delta. What replaces the directory loses them all, and with them rows that other engines wrote. (A
// directory at an address is not replaced at all.)
func Versions(dir string) (iceberg, delta int) {
	return countIn(filepath.Join(dir, "metadata"), ".metadata.json"), countIn(filepath.Join(dir, "_delta_log"), ".json")
}

func countIn(dir, suffix string) (n int) {
	entries, _ := os.ReadDir(dir) // without it, nothing is there
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			n++
		}
	}
	return n
}

// IsLake reports whether a local directory is a table of Iceberg or Delta.
func IsLake(dir string) bool {
	iceberg, delta := Versions(dir)
	return iceberg+delta > 0
}
