package laws_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/pred"
	"stoa/store"
)

// TestUnneededPagesAreNotRead: in each format that has pages, a filter that only values can answer reads its own
// column, and of the other columns only the pages with the one row that passes; if none passes, it reads no other
// column. Reads are counted in the store, and pages by the scan: each is read or skipped.
func TestUnneededPagesAreNotRead(t *testing.T) {
	const n = 40_000
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "t", Type: arrow.BinaryTypes.String}, {Name: "x", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i * i))
		text := fmt.Sprintf("a%xz", i*7919)
		if i == 23_456 {
			text = "a needle z"
		}
		b.Field(1).(*array.StringBuilder).Append(text)
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("%x and %x", i*104729, i*1299709))
	}
	rows := b.NewRecordBatch()
	for _, f := range []struct {
		name, to string
		opts     map[string]string
	}{
		{"set/", "cfile", map[string]string{"block-size": "4096", "encoding.t": "plain", "encoding.x": "plain"}},
		{"a.red", "redfile", map[string]string{"page-size": "8192"}},
		{"a.trv", "trevni", nil},
		{"a.carbondata", "carbon", map[string]string{"page-rows": "2000"}},
	} {
		place := filepath.Join(t.TempDir(), f.name)
		if strings.HasSuffix(f.name, "/") {
			place += "/"
		}
		w, err := stoa.Create(t.Context(), place, sc, stoa.CreateOptions{To: f.to, Opts: f.opts})
		if err == nil {
			err = w.Write(t.Context(), rows)
		}
		if err == nil {
			_, err = w.Close(t.Context())
		}
		if err != nil {
			t.Fatal(f.to, err)
		}
		read := func(where string, want int64, columns ...string) (bytes int64, pages [2]int64) {
			count := store.NewCounter(store.Local{})
			tab, err := stoa.Open(t.Context(), place, stoa.OpenOptions{Tree: count, From: f.to})
			if err != nil {
				t.Fatal(f.to, err)
			}
			defer tab.Close()
			spec := stoa.ScanSpec{Columns: columns, Ahead: 8 << 10, Work: &stoa.Work{}}
			if where != "" {
				if spec.Filter, err = pred.Parse(where); err != nil {
					t.Fatal(err)
				}
			}
			got := int64(0)
			for b, err := range tab.Scan(t.Context(), spec) {
				if err != nil {
					t.Fatal(f.to, err)
				}
				got += b.NumRows()
			}
			if got != want {
				t.Errorf("%s where %s: got %d rows, want %d", f.to, where, got, want)
			}
			return total(count.Reads()), [2]int64{spec.Work.Read.Load(), spec.Work.Skipped.Load()}
		}
		own, ownPages := read("", n, "t")
		all, allPages := read("", n, "n", "t", "x")
		one, onePages := read("t like '%needle%'", 1, "n", "t", "x")
		none, nonePages := read("t like '%noodle%'", 0, "n", "t", "x")
		_, keyPages := read(fmt.Sprint("n = ", 23_456*23_456), 1, "n", "t", "x")
		got := [][2]int64{allPages, ownPages, onePages, nonePages, keyPages}
		want := [][2]int64{{60, 0}, {20, 0}, {22, 38}, {20, 40}, {3, 57}}
		if f.to == "carbon" && !slices.Equal(got, want) {
			t.Errorf("of 20 pages a column, each of 2,000 rows, %d were read and skipped, want %d", got, want)
		}
		for i, p := range got[2:] {
			none := i == 1 // only the filter's column is read
			if p[0]+p[1] != allPages[0] || none && p[0] != ownPages[0] || !none && p[0] < 3 || got[i/2][1] > 0 {
				t.Errorf("%s: %d pages were read and skipped", f.to, got)
			}
		}
		t.Logf("%s: %d bytes of the filter's column, %d of all, %d for one row, %d for none", f.to, own, all, one, none)
		others := all - own
		if others < 200_000 || one-own > others/4 || none-own > others/8 || none > one {
			t.Errorf("%s: one matching row read %d bytes of other columns, none %d, of %d", f.to, one-own, none-own,
				others)
		}
	}
}

// TestCountingPagesReadsNothing: a scan that counts pages reads what it would read without counting, also where the
// pages of a column are listed nowhere, so that only their headers show how many there are.
func TestCountingPagesReadsNothing(t *testing.T) {
	skipped := int64(0)
	for _, place := range append(factPlaces(t), longPlaces(t)...) {
		read := func(where *pred.Expr, work *stoa.Work) (reads []store.Read, schema *arrow.Schema) {
			count := store.NewCounter(store.Local{})
			tab, err := stoa.Open(t.Context(), place, stoa.OpenOptions{Tree: count})
			if err != nil {
				t.Fatal(place, err)
			}
			defer tab.Close()
			for _, err := range tab.Scan(t.Context(), stoa.ScanSpec{Filter: where, Work: work, Parallel: 1}) {
				if err != nil {
					t.Fatal(place, err)
				}
			}
			return count.Reads(), tab.Schema()
		}
		_, schema := read(nil, nil)
		for _, f := range schema.Fields() {
			for _, text := range append(map[arrow.Type][]string{arrow.INT64: {"%q = 17"}, arrow.FLOAT64: {"%q = 0.3"},
				arrow.STRING: {"%q like '%%noodle%%'"}}[f.Type.ID()], "%q is null", "%q is not null") {
				where, err := pred.Parse(fmt.Sprintf(text, f.Name))
				if err != nil {
					t.Fatal(err)
				}
				work := &stoa.Work{}
				without, _ := read(where, nil)
				with, _ := read(where, work)
				if len(with) != len(without) || total(with) != total(without) {
					t.Errorf("%s where %s: %d reads of %d bytes, with counting %d of %d", place, where, len(without),
						total(without), len(with), total(with))
				}
				skipped += work.Skipped.Load()
			}
		}
	}
	if skipped < 100 {
		t.Errorf("only %d pages were skipped", skipped)
	}
}

// longPlaces are tables whose columns have many pages, which are listed or not.
func longPlaces(t *testing.T) (out []string) {
	for name, opts := range map[string]map[string]string{"listed.parquet": {"page-rows": "2000"},
		"unlisted.parquet": {"page-rows": "2000", "page-index": "false"}, "unlisted.red": {"index": "false"}} {
		place := filepath.Join(t.TempDir(), name)
		w, err := stoa.Create(t.Context(), place, splitRows(0).Schema(), stoa.CreateOptions{Opts: opts})
		if err == nil {
			err = w.Write(t.Context(), splitRows(200_000))
		}
		if err == nil {
			_, err = w.Close(t.Context())
		}
		if err != nil {
			t.Fatal(name, err)
		}
		out = append(out, place)
	}
	return out
}

func total(reads []store.Read) (bytes int64) {
	for _, r := range reads {
		bytes += int64(r.Got)
	}
	return bytes
}

// TestUnneededDictionaryIsNotRead: the dictionary of a column that is not in the filter is read only when a page of the
// column is.
func TestUnneededDictionaryIsNotRead(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "w", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	word := func(i int) string { return fmt.Sprintf("word %d %s", i%2000, strings.Repeat("x", 50)) }
	for i := range 20_000 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(word(i))
	}
	place := filepath.Join(t.TempDir(), "set") + "/"
	w, err := stoa.Create(t.Context(), place, sc,
		stoa.CreateOptions{To: "cfile", Opts: map[string]string{"encoding.w": "dict", "compression": "none"}})
	if err == nil {
		err = w.Write(t.Context(), b.NewRecordBatch())
	}
	if err == nil {
		_, err = w.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for where, want := range map[string][]string{"n < 0": nil, "n = 4321": {word(4321)}} {
		count := store.NewCounter(store.Local{})
		tab, err := stoa.Open(t.Context(), place, stoa.OpenOptions{Tree: count})
		if err != nil {
			t.Fatal(err)
		}
		filter, err := pred.Parse(where)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Columns: []string{"w"}, Filter: filter}) {
			if err != nil {
				t.Fatal(err)
			}
			for i := range int(b.NumRows()) {
				got = append(got, b.Column(0).ValueStr(i))
			}
		}
		tab.Close()
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", where, got, want)
		}
		bytes := 0
		for _, r := range count.Reads() {
			if strings.HasSuffix(r.Name, "w.cfile") {
				bytes += r.Got
			}
		}
		if large := bytes > 200_000; large != (want != nil) { // opening the file reads 128 KiB; the words take 120 kB
			t.Errorf("%s: %d bytes of the words were read", where, bytes)
		}
	}
}
