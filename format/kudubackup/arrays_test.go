package kudubackup_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
)

// arraysTable writes rows, of which each is the JSON of an object with the key k, as a backup of table t.
func arraysTable(t *testing.T, out string, sc *arrow.Schema, rows map[int64]string, opts map[string]string) {
	t.Helper()
	opts["table"], opts["key"] = "t", "k"
	w, err := stoa.Create(t.Context(), out, sc, stoa.CreateOptions{To: "kudu-backup", Formats: readers, Opts: opts})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, row := range rows {
		all = append(all, row)
	}
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader("["+strings.Join(all, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	if err := w.Write(t.Context(), b); err != nil {
		t.Fatal(errors.Join(err, w.Abort(t.Context())))
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// drawnArray is the JSON of an array, in the form of ValueStr.
func drawnArray(r *rand.Rand, item func() string) string {
	if r.IntN(4) == 0 {
		return "null"
	}
	var items []string
	for range r.IntN(4) {
		if r.IntN(4) == 0 {
			items = append(items, "null")
		} else {
			items = append(items, item())
		}
	}
	return "[" + strings.Join(items, ",") + "]"
}

// TestArrays: chains of backups of a table with arrays, whose rows are added, changed and deleted at random, give the
// rows that the table had at each of their times; the rows of backups older than a column have null there.
func TestArrays(t *testing.T) {
	k := arrow.Field{Name: "k", Type: arrow.PrimitiveTypes.Int64}
	numbers := arrow.Field{Name: "a", Type: arrow.ListOf(arrow.PrimitiveTypes.Int8), Nullable: true}
	texts := arrow.Field{Name: "s", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}
	all := arrow.NewSchema([]arrow.Field{k, texts, numbers}, nil)
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 9))
		root, rows := t.TempDir(), map[int64]string{}
		for step := range 4 {
			sc := all
			if step == 0 && seed%2 == 1 {
				sc = arrow.NewSchema([]arrow.Field{k}, nil) // the arrays are added later
			}
			for range 30 {
				key := int64(r.IntN(40))
				if r.IntN(3) == 0 {
					delete(rows, key)
					continue
				}
				a := drawnArray(r, func() string { return fmt.Sprint(r.IntN(256) - 128) })
				s := drawnArray(r, func() string { return fmt.Sprintf("%q", strings.Repeat("x", r.IntN(3))) })
				if sc != all {
					a, s = "null", "null"
				}
				rows[key] = fmt.Sprintf(`{"k":%d,"s":%s,"a":%s}`, key, s, a)
			}
			opts := map[string]string{"time": fmt.Sprint(1000 * (step + 1))}
			if step > 0 {
				opts["since"] = root
			}
			out := filepath.Join(t.TempDir(), "new")
			arraysTable(t, out, sc, rows, opts)
			dirs, _ := filepath.Glob(filepath.Join(out, "*", "*"))
			to := filepath.Join(root, filepath.Base(filepath.Dir(dirs[0])))
			os.MkdirAll(to, 0o777)
			if err := os.Rename(dirs[0], filepath.Join(to, filepath.Base(dirs[0]))); err != nil {
				t.Fatal(err)
			}
			if sc != all {
				continue
			}
			got, _ := rowsOf(t, root, stoa.OpenOptions{From: "kudu-backup"})
			if len(got) != len(rows) {
				t.Fatalf("seed %d, step %d: %d rows, want %d", seed, step, len(got), len(rows))
			}
			for key, row := range rows {
				cells := got[fmt.Sprint(key)]
				part := strings.SplitN(cells, " ", 3)
				have := fmt.Sprintf(`{"k":%s,"s":%s,"a":%s}`, part[0], part[1], part[2])
				if have = strings.ReplaceAll(have, "(null)", "null"); have != row {
					t.Fatalf("seed %d, step %d: %s, want %s", seed, step, have, row)
				}
			}
		}
	}
}
