package laws_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/store"
)

// TestSplitBytesAreOfTheColumns: the bytes of a plan are those of its columns. One column after the other they add up
// to the plan of all, they follow the sizes of the columns, and all together they are about the size of the files.
func TestSplitBytesAreOfTheColumns(t *testing.T) {
	for _, p := range []struct{ name, to string }{{"a.parquet", "parquet"}, {"set/", "cfile"}, {"a.trv", "trevni"},
		{"a.avro.trv", "trevni-avro"}, {"a.red", "redfile"}, {"red/", "redfile"}, {"a.carbondata", "carbon"}} {
		t.Run(p.name, func(t *testing.T) {
			place := filepath.Join(t.TempDir(), p.name)
			if strings.HasSuffix(p.name, "/") {
				place += "/"
			}
			writeSplitRows(t, place, p.to)
			table, err := stoa.Open(context.Background(), strings.TrimSuffix(place, "/"), stoa.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer table.Close()
			all, apart := plannedBytes(t, table, nil), int64(0)
			for _, c := range []string{"n", "t", "x"} {
				apart += plannedBytes(t, table, []string{c})
			}
			if apart != all {
				t.Errorf("expected columns of %d bytes together, found %d", all, apart)
			}
			n, text := plannedBytes(t, table, []string{"n"}), plannedBytes(t, table, []string{"t"})
			if n <= 0 || text <= 0 || n+text >= all {
				t.Errorf("expected column n to have a part of the %d bytes, found %d; column t %d", all, n, text)
			}
			if size := sizeBelow(t, place); all > size || all < size*7/10 {
				t.Errorf("expected about the size of the files, %d, found %d", size, all)
			}
		})
	}
}

func writeSplitRows(t *testing.T, place, to string) {
	w, err := stoa.Create(context.Background(), place, splitRows(0).Schema(), stoa.CreateOptions{To: to})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(context.Background(), splitRows(20_000)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// plannedBytes adds up the bytes of the splits of some columns.
func plannedBytes(t *testing.T, table *stoa.Table, columns []string) (sum int64) {
	for s, err := range table.Plan(context.Background(), stoa.ScanSpec{Columns: columns}, 1<<30) {
		if err != nil {
			t.Fatal(err)
		}
		sum += s.Bytes
	}
	return sum
}

// sizeBelow adds up the sizes of the files at a place, without those that only describe others.
func sizeBelow(t *testing.T, place string) (sum int64) {
	err := filepath.WalkDir(place, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), store.TempPrefix) {
			return err
		}
		st, err := os.Stat(name)
		if err == nil && filepath.Ext(name) != ".carbonindex" {
			sum += st.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
