package parquet

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/format"
	"stoa/internal/content"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
)

// copyOf copies the pages of files; why is the reason if it cannot.
func copyOf(t *testing.T, o format.CopyOptions, files ...[]byte) (out []byte, why string) {
	t.Helper()
	var from []format.Reader
	for _, b := range files {
		r, err := open(t.Context(), targetOf(b), format.OpenOptions{})
		if err != nil {
			return nil, "it cannot be opened"
		}
		defer r.Close()
		from = append(from, r)
	}
	c, why, err := copyPages(t.Context(), from, o)
	if err != nil {
		t.Fatal(err)
	}
	if why != "" {
		return nil, why
	}
	var w bytes.Buffer
	if err := c.Write(t.Context(), &w); err != nil {
		t.Fatal(err)
	}
	tree := store.NewMemory(map[string][]byte{"t": w.Bytes()})
	if err := c.Check(t.Context(), tree, "t"); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(w.Bytes())
	damaged[5] ^= 1
	if c.Check(t.Context(), store.NewMemory(map[string][]byte{"t": damaged}), "t") == nil && len(damaged) > 600 {
		t.Error("a changed byte of a page: Check: got no error, want one")
	}
	return w.Bytes(), ""
}

// sumOf returns a checksum over the rows of files.
func sumOf(t *testing.T, columns []string, files ...[]byte) (sum content.Sum, err error) {
	t.Helper()
	var s *content.Summer
	for _, b := range files {
		r := readerOf(t, b)
		defer r.Close()
		for b, err := range scanned(t.Context(), r, scan.Spec{Columns: columns}) {
			if err != nil {
				return sum, err
			}
			if s == nil {
				s = content.Same(b.Schema()).Summer(0)
			}
			s.Add(b)
		}
	}
	if s == nil {
		return sum, nil
	}
	return s.Sum(), nil
}

// pagesIn returns the bytes of all column chunks of some top-level columns (nil: all), one after the other.
func pagesIn(t *testing.T, b []byte, columns []string) (out []byte) {
	r := readerOf(t, b)
	defer r.Close()
	for g := range r.Footer.RowGroups {
		for f, leaves := range r.FieldLeaves {
			for _, leaf := range leaves {
				if at := r.ChunkSpan(g, leaf); columns == nil || slices.Contains(columns, r.Shown.Field(f).Name) {
					out = append(out, b[at.Off:at.End()]...)
				}
			}
		}
	}
	return out
}

// copyable returns files by pyarrow, DuckDB and polars.
func copyable(t *testing.T) []string {
	names, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(names) < 20 {
		t.Fatal(len(names), err)
	}
	return names
}

// TestCopiedPages: a copy has the same pages, byte by byte, the same rows, and no findings; likewise a copy of some
// columns, and of a file twice.
func TestCopiedPages(t *testing.T) {
	copied := 0
	for i, name := range copyable(t) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r := readerOf(t, b)
		var half []string
		for i, f := range r.Shown.Fields() {
			if i%2 == 0 {
				half = append(half, f.Name)
			}
		}
		r.Close()
		for _, c := range []struct {
			columns []string
			times   int
		}{{nil, 1}, {half, 1}, {nil, 3}, {half, 2}} {
			if testing.Short() && c.times > 1 && (i+c.times)%3 > 0 {
				continue
			}
			files := slices.Repeat([][]byte{b}, c.times)
			out, why := copyOf(t, format.CopyOptions{Columns: c.columns, Parallel: 2}, files...)
			if why != "" {
				t.Fatalf("%s: %s", name, why)
			}
			copied++
			if want := bytes.Repeat(pagesIn(t, b, c.columns), c.times); !bytes.Equal(pagesIn(t, out, nil), want) {
				t.Errorf("%s, %v: got different pages", name, c)
			}
			want, err := sumOf(t, c.columns, files...)
			got, err2 := sumOf(t, nil, out)
			if err != nil || err2 != nil {
				t.Fatal(name, err, err2)
			}
			if why := want.Difference(got); why != "" {
				t.Errorf("%s, %v: %s", name, c, why)
			}
			for _, f := range findings(out) {
				t.Errorf("%s, %v: %s: %s", name, c, f.Code, f.Message)
			}
		}
	}
	if least := map[bool]int{false: 80, true: 50}[testing.Short()]; copied < least {
		t.Errorf("got %d copies, want %d or more", copied, least)
	}
}

// TestDamageIsNotCopied: a file with any byte changed is not copied, or the copy has no errors and the rows that
// reading the changed file yields.
func TestDamageIsNotCopied(t *testing.T) {
	for _, name := range []string{"order.v1", "order.v2", "enc-dict.v1", "enc-delta.v2", "codec-zstd", "plain"} {
		intact, err := os.ReadFile("testdata/" + name + ".parquet")
		if err != nil {
			t.Fatal(err)
		}
		step := max(1, len(intact)/400)
		if testing.Short() {
			step *= 8
		} else if os.Getenv("STOA_LONG") == "" {
			step *= 3
		}
		refused, taken := 0, 0
		for at := 4; at < len(intact); at += step {
			b := bytes.Clone(intact)
			b[at] ^= 1 << (at % 8)
			var found []region.Finding
			out, why := copyOf(t, format.CopyOptions{Found: func(f region.Finding) { found = append(found, f) }}, b)
			if why != "" {
				refused++
				if strings.HasPrefix(why, "parquet.") && len(found) == 0 {
					t.Errorf("%s, byte %d: not copied (%s): got no findings, want one", name, at, why)
				}
				continue
			}
			taken++
			want, err := sumOf(t, nil, b)
			got, err2 := sumOf(t, nil, out)
			if err != nil || err2 != nil {
				t.Fatalf("%s, byte %d: reading it: %v; the copy: %v", name, at, err, err2)
			}
			if why := want.Difference(got); why != "" {
				t.Errorf("%s, byte %d: %s", name, at, why)
			}
			for _, f := range findings(out) {
				if f.Severity == region.Error {
					t.Errorf("%s, byte %d: got %s: %s in the copy, want no errors", name, at, f.Code, f.Message)
				}
			}
		}
		if refused == 0 || taken == 0 {
			t.Errorf("%s: got %d copies, %d refused, want some of each", name, taken, refused)
		}
	}
}

// TestNotCopied: if pages cannot be copied, the reason is returned.
func TestNotCopied(t *testing.T) {
	a, err := os.ReadFile("testdata/codec-zstd.parquet")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("testdata/order.v1.parquet")
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := os.ReadFile("testdata/encrypted/gcm.plain.v1.columns.parquet")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o     format.CopyOptions
		files [][]byte
		want  string
	}{
		{format.CopyOptions{}, [][]byte{a}, ""},
		{format.CopyOptions{Opts: map[string]string{"compression": "zstd"}}, [][]byte{a}, "compression changes"},
		{format.CopyOptions{Opts: map[string]string{"compression": "snappy"}}, [][]byte{a}, "compression changes"},
		{format.CopyOptions{Opts: map[string]string{"page-size": "64KiB"}}, [][]byte{a}, "page-size changes"},
		{format.CopyOptions{Opts: map[string]string{"memory": "64MiB"}}, [][]byte{a}, ""},
		{format.CopyOptions{Opts: map[string]string{"row-group-rows": "1000000"}}, [][]byte{a}, ""},
		{format.CopyOptions{Opts: map[string]string{"row-group-rows": "7"}}, [][]byte{a}, ""},
		{format.CopyOptions{Opts: map[string]string{"row-group-size": "1GiB"}}, [][]byte{a}, ""},
		{format.CopyOptions{Opts: map[string]string{"row-group-size": "10"}}, [][]byte{a}, "row-group-size"},
		{format.CopyOptions{Columns: []string{"s", "i64"}}, [][]byte{a}, "reordered"},
		{format.CopyOptions{Columns: []string{"ls.a"}}, [][]byte{a}, "part of a column"},
		{format.CopyOptions{}, [][]byte{a, b}, "different schemas"},
		{format.CopyOptions{}, [][]byte{sealed}, "encrypted"},
	} {
		if _, why := copyOf(t, c.o, c.files...); (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
			t.Errorf("%+v: got %q, want %q", c.o, why, c.want)
		}
	}
}
