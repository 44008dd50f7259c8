package cfile_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
)

// TestDirOtherTableWithoutEnd: no cell is returned of another table's file that has lost its footer with the set's id;
// of the table's own file the blocks before the cut are returned.
func TestDirOtherTableWithoutEnd(t *testing.T) {
	other := func(column string, row int) string { return dirCell(column, dirRows-1-row) }
	for _, opts := range []map[string]string{{"block-size": "512"}, {"block-size": "512", "checksums": "false"},
		{"block-size": "512", "plain-metadata": "true"}} {
		healthy, foreign := dirFilesOf(t, dirCell, opts), dirFilesOf(t, other, opts)
		given := 0
		for name, b := range foreign {
			if name == "t/table.json" {
				continue
			}
			column := strings.TrimSuffix(strings.TrimPrefix(name, "t/"), ".cfile")
			for k := int64(1); k < 8; k++ {
				if testing.Short() && k%3 != 1 {
					continue
				}
				cut := int64(len(b)) * k / 8
				for damage, x := range map[string][]byte{"cut": b[:cut],
					"overwritten": append(bytes.Clone(b[:cut]), make([]byte, int64(len(b))-cut)...)} {
					what := fmt.Sprintf("%v %s of another table, %s at %d", opts, name, damage, cut)
					files := maps.Clone(healthy)
					files[name] = x
					checkDirDamage(t, what, files)
					if _, cells, reported := dirRead(t, what, files, true); cells[column] > 0 {
						t.Errorf("%s: %d cells: %s", what, cells[column], reported)
					}
				}
				files := maps.Clone(healthy)
				files[name] = healthy[name][:int64(len(healthy[name]))*k/8]
				_, cells, _ := dirRead(t, fmt.Sprint(opts, name, " cut ", k), files, true)
				given += cells[column]
			}
		}
		if opts["checksums"] == "" && given < dirRows {
			t.Errorf("%v: only %d cells of cut files are recovered", opts, given)
		}
	}
}
