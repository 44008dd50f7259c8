package laws_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/cryptotest"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/store"
)

// unlikeColumns returns rows of texts that name their column and row, and are of so different lengths that no two pages
// have one size: pages of equal size that change places are a valid file.
func unlikeColumns(rows int) arrow.RecordBatch {
	fields := make([]arrow.Field, 4)
	for i := range fields {
		fields[i] = arrow.Field{Name: string(rune('a' + i)), Type: arrow.BinaryTypes.String}
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for col := range fields {
		for row := range rows {
			b.Field(col).(*array.StringBuilder).Append(fmt.Sprintf("%d/%d/", col, row) +
				strings.Repeat("x", 7*col+row/11))
		}
	}
	return b.NewRecordBatch()
}

// TestSwappedRanges: two ranges of a file change places, and its last metadata is damaged, so that recovery assembles
// row groups from what it finds. Whatever it gives, all cells of a row are of one row of the table. STOA_ROUNDS and
// STOA_SEED try others.
func TestSwappedRanges(t *testing.T) {
	rounds, seed := 400, uint64(304)
	if testing.Short() {
		rounds = 40
	}
	if n, err := strconv.Atoi(os.Getenv("STOA_ROUNDS")); err == nil {
		rounds = n
	}
	if n, err := strconv.ParseUint(os.Getenv("STOA_SEED"), 10, 64); err == nil {
		seed = n
	}
	cryptotest.SetGlobalRandom(t, seed) // the markers of RED1 are random, and as numbers of Thrift of various lengths
	table := unlikeColumns(600)
	defer table.Release()
	red := func(opts ...string) map[string]string {
		m := map[string]string{"compression": "none", "page-size": "500", "row-group-rows": "200"}
		for i := 0; i < len(opts); i += 2 {
			m[opts[i]] = opts[i+1]
		}
		return m
	}
	for _, x := range []struct {
		format string
		opts   map[string]string
	}{
		{"redfile", red("index", "false", "generation", "A")},
		{"redfile", red("index", "false", "generation", "A", "row-group-rows", "100", "page-size", "1048576")},
		{"redfile", red("index", "false", "sync", "0")},
		{"redfile", red()},
		{"parquet", map[string]string{"compression": "none", "dictionary": "false", "row-group-rows": "200"}},
		{"trevni", map[string]string{"codec": "null", "checksum": "crc32"}},
	} {
		whole := wholeFile(t, table, x.format, x.opts)
		starts := structures(t, whole)
		from, to := valuesOf(whole, x.format)
		r := rand.New(rand.NewPCG(seed, uint64(len(whole))))
		given := 0
		for range rounds {
			bad, what := swapped(r, whole, starts, from, to)
			rows, wrong := consistent(t.Context(), bad, table)
			if given += rows; wrong != "" {
				t.Errorf("%s %v: %s: %s", x.format, x.opts, what, wrong)
			}
		}
		t.Logf("%s %v: %d changes, %d rows came out", x.format, x.opts, rounds, given)
		if given == 0 {
			t.Errorf("%s %v: nothing was recovered", x.format, x.opts)
		}
	}
}

// valuesOf returns the range of a file in which ranges change places: not within the metadata of Parquet and Trevni,
// which have no checksum. Two entries of theirs that change places are the metadata of another table.
func valuesOf(whole []byte, format string) (from, to int) {
	from, to = 1, len(whole)-200
	switch format {
	case "parquet":
		to = len(whole) - 8 - int(binary.LittleEndian.Uint32(whole[len(whole)-8:]))
	case "trevni":
		from = bytes.Index(whole, []byte("0/0/")) // the first value
	}
	return from, to
}

func wholeFile(t *testing.T, table arrow.RecordBatch, format string, opts map[string]string) []byte {
	t.Helper()
	mem := store.NewMemory(nil)
	w, err := stoa.Create(t.Context(), "t", table.Schema(), stoa.CreateOptions{To: format, Opts: opts,
		Sink: mem.Sink("t")})
	if err == nil {
		err = w.Write(t.Context(), table)
	}
	if err == nil {
		_, err = w.Close(t.Context())
	}
	if err != nil {
		t.Fatalf("%s %v: %v", format, opts, err)
	}
	return mem.Bytes("t")
}

// swapped swaps two ranges, each of which begins near a structure, and inserts or changes a byte near the end. No
// structure is then where another one began: pages do not name their column, and nothing tells a whole one from that
// whose place it has.
func swapped(r *rand.Rand, whole []byte, starts []int, from, to int) (bad []byte, what string) {
	bad = bytes.Clone(whole)
	at := len(bad) - 1 - r.IntN(200)
	if r.IntN(2) == 0 {
		bad = slices.Insert(bad, at, bad[at])
	} else {
		bad[at] ^= byte(1 + r.IntN(255))
	}
	place := func() int {
		p := starts[r.IntN(len(starts))]
		if r.IntN(2) == 0 {
			p += r.IntN(160) - 80
		}
		return max(from, p)
	}
	a, b := place(), place()
	if a > b {
		a, b = b, a
	}
	n := min(b-a, to-b)
	if n <= 0 {
		return bad, fmt.Sprintf("a byte at %d", at)
	}
	if r.IntN(3) > 0 {
		n = 1 + r.IntN(n)
	}
	for _, s := range starts {
		if _, same := slices.BinarySearch(starts, s-a+b); same && s >= a-64 && s < a+n {
			n = max(s-a, 0) // up to there; before it, a header would get the rest of the other one
		}
	}
	first := bytes.Clone(bad[a : a+n])
	copy(bad[a:a+n], bad[b:b+n])
	copy(bad[b:b+n], first)
	return bad, fmt.Sprintf("%d bytes at %d and %d, and a byte at %d", n, a, b, at)
}

// consistent recovers a file of unlikeColumns, and describes the first cell of another column or row
// than the cell before it.
func consistent(ctx context.Context, file []byte, table arrow.RecordBatch) (rows int, wrong string) {
	o := stoa.OpenOptions{Recover: true, Tree: store.NewMemory(map[string][]byte{"t": file})}
	tab, err := stoa.Open(ctx, "t", o)
	if err != nil {
		return 0, ""
	}
	defer tab.Close()
	for b, err := range tab.Scan(ctx, stoa.ScanSpec{Damaged: stoa.NullCells}) {
		if err != nil {
			return rows, ""
		}
		for i := range int(b.NumRows()) {
			of := int64(-1)
			for k := range int(b.NumCols()) {
				var col, row int64
				at := table.Schema().FieldIndices(b.ColumnName(k))
				if len(at) == 0 || b.Column(k).IsNull(i) {
					continue
				}
				text := b.Column(k).ValueStr(i)
				if _, ok := b.Column(k).(*array.Binary); ok { // recovery lost the type
					text = string(b.Column(k).(*array.Binary).Value(i))
				}
				_, err := fmt.Sscanf(text, "%d/%d/", &col, &row)
				if err != nil || col != int64(at[0]) || of >= 0 && row != of {
					return rows, fmt.Sprintf("row %d of column %s has %.12q, beside cells of row %d", rows+i,
						b.ColumnName(k), text, of)
				}
				of = row
			}
		}
		rows += int(b.NumRows())
	}
	return rows, ""
}
