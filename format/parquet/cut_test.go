package parquet

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
)

// cuttable returns a file in which pages of all columns begin at the same rows, as they have equally many entries,
// except those of lists if items, the maximum number of their entries, is more than one.
func cuttable(t *testing.T, rows, items int, opts map[string]string) []byte {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
		{Name: "late", Type: arrow.PrimitiveTypes.Uint32, Nullable: true},
	}, nil))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		f := []float64{rng.NormFloat64(), math.NaN(), 0, math.Copysign(0, -1)}[max(0, rng.IntN(8)-4)]
		if b.Field(1).(*array.Float64Builder).Append(f); i%9 == 0 {
			b.Field(2).AppendNull()
		} else {
			b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("%d %s", i%50, strings.Repeat("x", 80)))
		}
		l := b.Field(3).(*array.ListBuilder)
		l.Append(i%4 != 0)
		for range rng.IntN(items+1) * min(i%4, 1) {
			l.ValueBuilder().(*array.Int32Builder).Append(int32(i))
		}
		if i < rows/2 {
			b.Field(4).AppendNull()
		} else {
			b.Field(4).(*array.Uint32Builder).Append(-uint32(i))
		}
	}
	return written(t, opts, b.NewRecordBatch()).Bytes("t")
}

// TestRowGroupsAreCut: row groups that exceed the limit are cut at the beginnings of pages of all columns; the parts
// have the same rows, do not exceed the limit, and have no findings.
func TestRowGroupsAreCut(t *testing.T) {
	for _, more := range []map[string]string{{}, {"page-version": "2", "compression": "none"}, {"page-index": "false",
		"page-version": "2"}, {"bloom": "n,s", "dictionary": "false"}, {"sorting-columns": "n", "crc": "false"}} {
		opts := map[string]string{"page-rows": "100", "row-group-rows": "3000"}
		for k, v := range more {
			opts[k] = v
		}
		b := cuttable(t, 5000, 1, opts)
		for _, c := range []struct {
			key, value string
			rows       []int64
		}{
			{"row-group-rows", "1000", []int64{1000, 1000, 1000, 1000, 1000}},
			{"row-group-rows", "1950", []int64{1900, 1100, 1900, 100}},
			{"row-group-rows", "2000", []int64{2000, 1000, 2000}},
			{"row-group-size", "20000", nil},
		} {
			for _, columns := range [][]string{nil, {"f", "l"}} {
				name := fmt.Sprint(more, c, columns)
				out, why := copyOf(t, format.CopyOptions{Columns: columns, Opts: map[string]string{c.key: c.value}}, b)
				if why != "" {
					t.Fatalf("%s: %s", name, why)
				}
				checkParts(t, name, out, c.rows)
				want, err := sumOf(t, columns, b)
				got, err2 := sumOf(t, nil, out)
				if err != nil || err2 != nil || want.Difference(got) != "" {
					t.Errorf("%s: %v, %v: %s", name, err, err2, want.Difference(got))
				}
				for _, f := range findings(out) {
					t.Errorf("%s: %s: %s", name, f.Code, f.Message)
				}
			}
		}
	}
}

// checkParts compares the row groups of a copy with the expected numbers of rows; nil: they have at most 20,000 bytes.
func checkParts(t *testing.T, name string, b []byte, rows []int64) {
	t.Helper()
	r := readerOf(t, b)
	defer r.Close()
	var got []int64
	for _, g := range r.Footer.RowGroups {
		got = append(got, g.NumRows)
		stored := int64(0)
		for i, c := range g.Columns {
			stored += c.MetaData.TotalCompressedSize
			if stats := c.MetaData.Statistics; stats == nil || stats.Nulls == nil {
				t.Errorf("%s: column %d: got no null count", name, i)
			} else if c.ColumnIndexOffset != nil && stats.Min == nil && *stats.Nulls < g.NumRows &&
				c.MetaData.PathInSchema[0] == "n" {
				t.Errorf("%s: column %d: got no bounds", name, i)
			}
		}
		if rows == nil && stored > 20000 {
			t.Errorf("%s: got a row group of %d bytes, want at most 20000", name, stored)
		}
	}
	if rows != nil && fmt.Sprint(got) != fmt.Sprint(rows) || len(got) < 3 {
		t.Errorf("%s: got row groups of %d rows, want %d", name, got, rows)
	}
}

// TestPagesAreCut: if pages of all columns do not begin at the same row near the limit, exactly the pages with rows of
// two parts are cut, in files by stoa, pyarrow, DuckDB and polars, in every encoding, codec and page version, with and
// without indexes. Rows are the same, no part exceeds the limit, and there are no findings.
func TestPagesAreCut(t *testing.T) {
	files := map[string][]byte{}
	for _, name := range copyable(t) {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = b
	}
	for i, opts := range []map[string]string{{}, {"page-version": "2", "compression": "none"}, {"page-index": "false"},
		{"page-index": "false", "page-version": "2"}, {"dictionary": "false"}, {"dictionary": "false", "crc": "false",
			"encoding": "plain", "compression": "gzip"}, {"bloom": "n,s", "compression": "zstd"},
		{"sorting-columns": "n", "compression": "lz4"}, {"compression": "brotli", "page-version": "2"}} {
		opts["page-rows"] = fmt.Sprint(64 + i)
		files[fmt.Sprint(opts)] = cuttable(t, 2000, i%4, opts)
	}
	done, sliced := 0, 0
	for name, b := range files {
		r := readerOf(t, b)
		rows, leaves := int64(0), len(r.Leaves)
		for _, g := range r.Footer.RowGroups {
			rows = max(rows, g.NumRows)
		}
		r.Close()
		rng := rand.New(rand.NewPCG(uint64(len(b)), 7))
		for again := range 3 {
			if rows < 2 || testing.Short() && again > 0 {
				break
			}
			most := max(1, rows/50) + rng.Int64N(rows-max(1, rows/50))
			out, why := copyOf(t, format.CopyOptions{Opts: map[string]string{"row-group-rows": fmt.Sprint(most)}}, b)
			if why != "" {
				t.Errorf("%s: %s", name, why)
				continue
			}
			done++
			parts, others := newPages(t, out, b, most)
			if sliced += others; others > 2*leaves*parts {
				t.Errorf("%s: got %d new pages in %d parts of %d columns, want at most 2 for each", name, others, parts,
					leaves)
			}
			want, err := sumOf(t, nil, b)
			got, err2 := sumOf(t, nil, out)
			if err != nil || err2 != nil || want.Difference(got) != "" {
				t.Errorf("%s, %d rows: %v, %v: %s", name, most, err, err2, want.Difference(got))
			}
			for _, f := range findings(out) {
				t.Errorf("%s, %d rows: %s: %s", name, most, f.Code, f.Message)
			}
		}
	}
	t.Logf("%d files cut, %d pages", done, sliced)
	if done < 30 || sliced < 500 {
		t.Errorf("got %d files cut, %d pages, want 30, 500 or more", done, sliced)
	}
}

// newPages counts the row groups, which must not exceed the limit, and the pages that are not those of the input.
func newPages(t *testing.T, out, in []byte, limit int64) (groups, others int) {
	t.Helper()
	r := readerOf(t, out)
	defer r.Close()
	for g, x := range r.Footer.RowGroups {
		if x.NumRows > limit || x.NumRows == 0 {
			t.Errorf("got a row group of %d rows, want 1 to %d", x.NumRows, limit)
		}
		for leaf := range x.Columns {
			for p, err := range r.Pages(t.Context(), g, leaf) {
				if err != nil {
					t.Fatal(err)
				}
				if at := p.Whole(); !bytes.Contains(in, out[at.Off:at.End()]) {
					others++
				}
			}
		}
	}
	return len(r.Footer.RowGroups), others
}

// TestFewestPagesAreCut: if pages of all columns begin at the same row near the limit, none is cut; otherwise each part
// that ends in the middle of pages cuts one of each of the five columns, and the next one ends with these, if it may.
func TestFewestPagesAreCut(t *testing.T) {
	b := cuttable(t, 1000, 1, map[string]string{"page-rows": "100", "row-group-rows": "1000"})
	for most, want := range map[string]int64{"100": 0, "150": 0, "999": 0, "60": 5 * 10, "50": 5 * 10} {
		r, err := open(t.Context(), targetOf(b), format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c, why, err := copyPages(t.Context(), []format.Reader{r}, format.CopyOptions{
			Opts: map[string]string{"row-group-rows": most}})
		if err != nil || why != "" {
			t.Fatal(why, err)
		}
		if got := c.Cut(); got != want {
			t.Errorf("row-group-rows=%s: %d pages are cut, want %d", most, got, want)
		}
		r.Close()
	}
}

// TestDamageIsNotCut: a page with a changed byte is neither copied nor cut.
func TestDamageIsNotCut(t *testing.T) {
	opts := format.CopyOptions{Opts: map[string]string{"row-group-rows": "130"}}
	intact := cuttable(t, 1000, 2, map[string]string{"page-rows": "100"})
	for _, at := range []int{120, 300, len(intact) / 3, len(intact) / 2} {
		b := bytes.Clone(intact)
		b[at] ^= 4
		if _, why := copyOf(t, opts, b); why == "" {
			t.Errorf("damage at %d is copied", at)
		}
	}
}
