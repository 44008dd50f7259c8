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
// column. Reads are counted in the store.
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
		read := func(where string, want int64, columns ...string) (bytes int64) {
			count := store.NewCounter(store.Local{})
			tab, err := stoa.Open(t.Context(), place, stoa.OpenOptions{Tree: count, From: f.to})
			if err != nil {
				t.Fatal(f.to, err)
			}
			defer tab.Close()
			spec := stoa.ScanSpec{Columns: columns, Ahead: 8 << 10}
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
			for _, r := range count.Reads() {
				bytes += int64(r.Got)
			}
			return bytes
		}
		own, all := read("", n, "t"), read("", n, "n", "t", "x")
		one, none := read("t like '%needle%'", 1, "n", "t", "x"), read("t like '%noodle%'", 0, "n", "t", "x")
		t.Logf("%s: %d bytes of the filter's column, %d of all, %d for one row, %d for none", f.to, own, all, one, none)
		others := all - own
		if others < 200_000 || one-own > others/4 || none-own > others/8 || none > one {
			t.Errorf("%s: one matching row read %d bytes of other columns, none %d, of %d", f.to, one-own, none-own,
				others)
		}
	}
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
