//go:build interop

package parquet

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/parquet"
)

// TestStats: the statistics of columns, over one file and over several, agree with pyarrow's metadata of their chunks:
// raw and stored bytes, with headers and dictionaries, values, codecs; so do the sums over all columns.
func TestStats(t *testing.T) {
	cmd := exec.Command(filepath.Join(home(t), "venv/bin/python"), "stats.py", t.TempDir(), "1", "100")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	columns := 0
	for line := range strings.Lines(string(out)) {
		var doc struct {
			Files   []string
			Columns map[string]struct {
				Stored, Raw, Values, Nulls int64
				Codecs                     []string
			}
		}
		if err := json.Unmarshal([]byte(line), &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Columns) == 0 { // no row groups
			continue
		}
		table, err := stoa.OpenAll(t.Context(), doc.Files, stoa.OpenOptions{Formats: []format.Format{parquet.Format}})
		if err != nil {
			t.Fatal(err)
		}
		stats, err := table.Stats(t.Context(), stoa.Fail, nil)
		table.Close()
		if err != nil {
			t.Fatal(err)
		}
		var stored, raw int64
		for _, s := range stats {
			want, ok := doc.Columns[s.Name]
			if columns++; !ok || s.Stored != want.Stored || s.Raw != want.Raw || s.Rows != want.Values ||
				s.Codec != strings.Join(want.Codecs, ",") || want.Nulls > 0 && s.Name == "i" && s.Nulls != want.Nulls {
				t.Errorf("%s, %s: got %+v, want %+v", doc.Files[0], s.Name, s, want)
			}
			stored, raw = stored+want.Stored, raw+want.Raw
		}
		if sum := stoa.SumStats(stats); sum.Stored != stored || sum.Raw != raw {
			t.Errorf("%s: got sums %d and %d, want %d and %d", doc.Files[0], sum.Stored, sum.Raw, stored, raw)
		}
	}
	if columns < 300 {
		t.Errorf("got %d columns, want 300 or more", columns)
	}
	t.Logf("COUNT statistics of %d columns of files and globs agree with pyarrow", columns)
}
