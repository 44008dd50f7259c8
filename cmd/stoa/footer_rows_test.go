package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/look"
)

// TestFooterRows: if a column of a rowset has lost its footer, verify says how many rows that costs, and the finding of
// no column claims more rows than the table has.
func TestFooterRows(t *testing.T) {
	const fixture = "../../format/kudu/testdata/file"
	_, text := runOver(t, "count", fixture)
	rows, err := strconv.ParseInt(strings.Fields(text)[0], 10, 64)
	if err != nil {
		t.Fatal(text, err)
	}
	blocks, err := filepath.Glob(fixture + "/data/data/*/*/*/*")
	if err != nil || len(blocks) == 0 {
		t.Fatal(blocks, err)
	}
	columns := 0
	for _, block := range blocks {
		dir := filepath.Join(t.TempDir(), "k")
		copyDir(t, fixture, dir)
		name := strings.Replace(block, fixture, dir, 1)
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		clear(b[len(b)-8:])
		if err := os.WriteFile(name, b, 0o666); err != nil {
			t.Fatal(err)
		}
		st, text := runOver(t, "verify -f json", dir)
		var v look.VerifyDoc
		if err := json.Unmarshal([]byte(text[:strings.LastIndex(text, "}")+1]), &v); err != nil {
			t.Fatal(err)
		}
		for _, f := range v.Findings {
			if f.Code != "cfile.footer.damaged" || !strings.Contains(f.Path, "/column/") {
				continue
			}
			columns++
			if st != cli.StatusDamage || f.Lost == nil || *f.Lost <= 0 || *f.Lost > rows || f.From == nil ||
				*f.From != 0 || *f.To != *f.Lost {
				t.Errorf("%s: %+v, want the rows of its rowset lost, at most %d", block, f, rows)
			}
		}
	}
	if columns == 0 {
		t.Error("no column")
	}
}
