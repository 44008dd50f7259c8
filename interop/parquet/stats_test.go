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

// TestStats: what stats says of columns, over one file and over several, is what pyarrow says of their chunks: bytes
// raw and stored, with headers and dictionaries, values, codecs; and the sums over all columns.
func TestStats(t *testing.T) {
	cmd := exec.Command(filepath.Join(home(t), "venv/bin/python"), "stats.py", t.TempDir(), "1", "100")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	columns := 0
	for line := range strings.Lines(string(out)) {
		var is struct {
			Files   []string
			Columns map[string]struct {
				Stored, Raw, Values, Nulls int64
				Codecs                     []string
			}
		}
		if err := json.Unmarshal([]byte(line), &is); err != nil {
			t.Fatal(err)
		}
		if len(is.Columns) == 0 { // no row groups
			continue
		}
		table, err := stoa.OpenAll(t.Context(), is.Files, stoa.OpenOptions{Formats: []format.Format{parquet.Format}})
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
			want, ok := is.Columns[s.Name]
			if columns++; !ok || s.Stored != want.Stored || s.Raw != want.Raw || s.Rows != want.Values ||
				s.Codec != strings.Join(want.Codecs, ",") || want.Nulls > 0 && s.Name == "i" && s.Nulls != want.Nulls {
				t.Errorf("%s, %s: %+v, pyarrow says %+v", is.Files[0], s.Name, s, want)
			}
			stored, raw = stored+want.Stored, raw+want.Raw
		}
		if sum := stoa.SumStats(stats); sum.Stored != stored || sum.Raw != raw {
			t.Errorf("%s: sums %d and %d instead of %d and %d", is.Files[0], sum.Stored, sum.Raw, stored, raw)
		}
	}
	if columns < 300 {
		t.Errorf("%d columns", columns)
	}
	t.Logf("COUNT pyarrow says of %d columns of files and globs what stats does", columns)
}
