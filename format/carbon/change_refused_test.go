package carbon_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
)

// TestChangesRefuseDamage: if the schema, status, segment files or indexes of a table are damaged so that reading
// fails, every change is refused without changing a byte, except deleting the damaged segment.
func TestChangesRefuseDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 1))
	refused := map[string]int{}
	for range 120 {
		name := []string{"managed1", "managed_alter", "managed_del", "managed_part"}[r.IntN(4)]
		dir := filepath.Join(t.TempDir(), "t")
		if err := os.CopyFS(dir, os.DirFS(filepath.Join(golden2, "managed", name))); err != nil {
			t.Fatal(err)
		}
		what := damageMetadata(t, r, dir)
		_, err := readAll(t, dir)
		if err == nil {
			continue
		}
		before := snapshot(t, dir)
		for change, do := range changesOf(t, dir) {
			if do() == nil {
				t.Errorf("%s, %s: %s: got no error, reading %v", name, what, change, err)
			}
			if snapshot(t, dir) != before {
				t.Fatalf("%s, %s: %s: got changed files, reading %v", name, what, change, err)
			}
			refused[change]++
		}
	}
	if t.Log(refused); refused["load"] < 30 {
		t.Error("got too few damaged tables")
	}
}

// changesOf returns the changes of a table, by verb.
func changesOf(t *testing.T, dir string) map[string]func() error {
	ch, p, ctx := carbon.Format.Change, format.TablePlace{Dir: dir}, t.Context()
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil)
	fresh := arrow.Field{Name: "fresh", Type: arrow.PrimitiveTypes.Int32, Nullable: true}
	return map[string]func() error{
		"load": func() error {
			l, err := ch.Append(ctx, p, sc, format.LoadOptions{})
			if err == nil {
				err = l.Abort(ctx)
				return errors.Join(nil, err)
			}
			return err
		},
		"load, looked at": func() error { return ch.CheckAppend(ctx, p, sc, format.LoadOptions{}) },
		"compact": func() error {
			_, err := ch.PlanCompaction(p, format.CompactOptions{Major: true})
			return err
		},
		"merge-index": func() error {
			_, err := ch.MergeIndexes(ctx, p, nil, false)
			return err
		},
		"add": func() error {
			return ch.AddColumn(ctx, p, fresh, nil, false)
		},
		"drop": func() error { return ch.DropColumn(ctx, p, "id", false) },
		"clean": func() error {
			_, err := ch.Clean(ctx, p, false)
			return err
		},
		"delete": func() error {
			_, err := ch.Delete(ctx, p, nil, nil)
			return err
		},
	}
}

// damageMetadata damages one file of a table that is not a data file.
func damageMetadata(t *testing.T, r *rand.Rand, dir string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(name, ".carbondata") && !strings.HasSuffix(name, ".lock") {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	name := names[r.IntN(len(names))]
	b, err := os.ReadFile(name)
	if err != nil || len(b) == 0 {
		return "nothing"
	}
	how := []string{"flip", "flip", "flip", "cut", "empty", "gone"}[r.IntN(6)]
	switch at := r.IntN(len(b)); how {
	case "flip":
		b[at] ^= 1 << r.IntN(8)
	case "cut":
		b = b[:at]
	case "empty":
		b = nil
	}
	if err = os.WriteFile(name, b, 0o666); how == "gone" {
		err = os.Remove(name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return how + " " + strings.TrimPrefix(name, dir)
}

// readAll reads a table as `stoa cat` does: error findings of the reader become errors.
func readAll(t *testing.T, dir string) (rows int64, err error) {
	tab, err := stoa.Open(t.Context(), dir, stoa.OpenOptions{From: "carbon"})
	if err != nil {
		return 0, err
	}
	defer tab.Close()
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			return rows, err
		}
		rows += b.NumRows()
	}
	for _, f := range tab.Findings() {
		if f.Severity >= region.Error {
			return rows, errors.New(f.Message)
		}
	}
	return rows, nil
}

// snapshot returns the content of a directory except locks.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".lock") {
			return err
		}
		b, err := os.ReadFile(name)
		out.WriteString(name + "\x00" + string(b) + "\x00")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
