//go:build interop

package parquet

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/parquet"
	"stoa/store"
)

// fromEnv is a number from the environment.
func fromEnv(t *testing.T, key string, def uint64) uint64 {
	s := os.Getenv(key)
	if s == "" {
		return def
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return n
}

// drawOptions draws options of the writer.
func drawOptions(r *rand.Rand) map[string]string {
	opts := map[string]string{}
	for _, o := range [][]string{{"compression", "", "none", "zstd", "gzip", "lz4", "brotli"},
		{"page-version", "", "1", "2"}, {"dictionary", "", "false"},
		{"page-size", "", "1", "100", "1000"}, {"row-group-rows", "", "1", "7", "20"}, {"encoding", "", "", "plain"},
		{"page-index", "", "false"}, {"crc", "", "false"}} {
		if v := o[1+r.IntN(len(o)-1)]; v != "" {
			opts[o[0]] = v
		}
	}
	return opts
}

// writeTable writes a random table with random options, in a few batches.
func writeTable(t *testing.T, r *rand.Rand, table formattest.Table, opts map[string]string) []byte {
	tree := store.NewMemory(nil)
	w, err := parquet.Format.Create(t.Context(), tree.Sink("t"), table.Schema,
		format.WriteOptions{Rows: -1, Opts: opts})
	if err != nil {
		t.Fatalf("%v: %v", table, err)
	}
	for from := int64(0); from < table.Batch.NumRows(); {
		to := min(table.Batch.NumRows(), from+1+r.Int64N(40))
		if err := w.Write(t.Context(), table.Batch.NewSlice(from, to)); err != nil {
			t.Fatalf("%v: %v", table, err)
		}
		from = to
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return tree.Bytes("t")
}

// TestNested: pyarrow reads random nested tables correctly: STOA_TABLES (1,000) from STOA_SEED (0) on.
func TestNested(t *testing.T) {
	dir, first := t.TempDir(), fromEnv(t, "STOA_SEED", 0)
	tables := fromEnv(t, "STOA_TABLES", 1000)
	var list strings.Builder
	for seed := first; seed < first+tables; seed++ {
		r := rand.New(rand.NewPCG(seed, 19))
		table := formattest.RandomTable(r,
			formattest.TableOptions{Rows: 60, Columns: 4, Depth: 6, Leaves: formattest.LeafTypes(),
				NullableFixed: true, EmptyStructs: seed%4 == 0})
		data := writeTable(t, r, table, drawOptions(r))
		var want [][]any
		for i, cells := range table.Cells {
			col := []any{}
			for _, c := range cells {
				col = append(col, formattest.Plain(table.Schema.Field(i).Type, c))
			}
			want = append(want, col)
		}
		if seed == first+tables-1 && len(want[0]) > 0 { // a wrong cell in the last one must be noticed
			want[0][0] = []any{"wrong on purpose"}
		}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, fmt.Sprint("seed-", seed))
		for ext, b := range map[string][]byte{".parquet": data, ".json": text} {
			if err := os.WriteFile(name+ext, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Fprintf(&list, "%s.parquet %s.json\n", name, name)
		table.Batch.Release()
	}
	at := filepath.Join(dir, "list")
	if err := os.WriteFile(at, []byte(list.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(home(t), "venv/bin/python"), "nested.py", at)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	wrong := map[string]bool{}
	for _, line := range strings.Split(string(out), "\n") {
		if s, ok := strings.CutPrefix(line, "WRONG "); ok {
			name := filepath.Base(strings.Fields(s)[0])
			if name == fmt.Sprintf("seed-%d.parquet", first+tables-1) {
				t.Log("wrong_cell: noticed: ", s)
				continue
			}
			wrong[name] = true
			t.Error(s)
		}
		if s, ok := strings.CutPrefix(line, "READ "); ok {
			t.Logf("COUNT nested tables and cells read by pyarrow: %s; wrong tables: %d", s, len(wrong))
		}
	}
}
