package cfile

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// owns reports whether a directory is a table that stoa wrote and holds nothing else, so that it may be replaced: it
// has a setFile of ours, and otherwise only regular files listed there.
func owns(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, setFile))
	if err != nil {
		return false
	}
	var set struct {
		Stoa    string `json:"stoa"`
		Columns []struct {
			File string `json:"file"`
		} `json:"columns"`
	}
	if json.Unmarshal(b, &set) != nil || set.Stoa != setKind {
		return false
	}
	known := map[string]bool{setFile: true}
	for _, c := range set.Columns {
		known[c.File] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if !known[e.Name()] || !e.Type().IsRegular() {
			return false
		}
	}
	return true
}
