package cli

import (
	"os"
	"path/filepath"
	"regexp"
)

// Versions returns how many versions the table of a lake in a local directory has: metadata files of Iceberg, or
// commits of Delta. It is 0 if there is no such table. What replaces the directory loses them all, and with them rows
// that other engines wrote.
func Versions(dir string) int {
	most := 0
	for sub, name := range map[string]*regexp.Regexp{"metadata": icebergVersion, "_delta_log": deltaVersion} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil {
			continue
		}
		n := 0
		for _, e := range entries {
			if name.MatchString(e.Name()) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

var (
	icebergVersion = regexp.MustCompile(`\.metadata\.json$`)
	deltaVersion   = regexp.MustCompile(`^\d{20}\.json$`)
)
