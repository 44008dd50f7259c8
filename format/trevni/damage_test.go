package trevni_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni"
	"stoa/internal/scan"
	judge "stoa/interop/trevni"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

func flatBatch(t testing.TB, sc *arrow.Schema, n int) arrow.RecordBatch {
	return judge.RandomBatch(rand.New(rand.NewPCG(5, 5)), sc, n)
}

// scanAll reads everything through the engine; rows as text.
func scanAll(ctx context.Context, data []byte, spec scan.Spec, recovering bool) (rows string, err error) {
	o := format.OpenOptions{Limits: format.Limits{Page: 1 << 20, Metadata: 1 << 20}}
	open := trevni.Format.Open
	if recovering {
		open = func(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
			r, _, err := trevni.Format.Recover(ctx, tg, o)
			return r, err
		}
	}
	return scanWith(ctx, data, spec, o, open)
}

// scanWith is scanAll with options for opening the file.
func scanWith(ctx context.Context, data []byte, spec scan.Spec, o format.OpenOptions,
	open func(context.Context, format.Target, format.OpenOptions) (format.Reader, error)) (rows string, err error) {
	m := store.NewMemory(map[string][]byte{"f.trv": data})
	r, err := open(ctx, format.Target{Tree: m, Name: "f.trv"}, o)
	if err != nil {
		return "", err
	}
	defer r.Close()
	if groups, err := r.RowGroups(ctx, format.Part{}, format.Query{}); err == nil && groups[0].Rows > 1<<20 {
		return "", nil // nulls and runs take no bytes, so descriptors may claim any number of them
	}
	var b strings.Builder
	src := scan.Source{Reader: r, Objects: scan.NewObjects(m), Dicts: scan.NewDicts(), Limits: o.Limits}
	for batch, err := range scan.Run(ctx, src, spec, nil) {
		if err != nil {
			return b.String(), err
		}
		for _, c := range batch.Columns() {
			j, err := c.MarshalJSON()
			if err != nil {
				return b.String(), err
			}
			b.Write(j)
		}
		if b.Len() > 1<<24 {
			return b.String(), nil
		}
	}
	return b.String(), nil
}

// samples returns small files of every kind, with checksums.
func samples(t testing.TB) map[string][]byte {
	sc := arrow.NewSchema([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Float64), Nullable: true},
		{Name: "t", Type: arrow.StructOf(arrow.Field{Name: "m",
			Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), Nullable: true}),
			Nullable: true}}, nil)
	b := flatBatch(t, sc, 16)
	out := map[string][]byte{}
	for _, c := range []string{"null", "deflate"} {
		opts := map[string]string{"codec": c, "block-size": "60", "arrow-schema": "false", "first-values": "i"}
		out["wiki "+c] = write(t, trevni.Format, sc, opts, b).Bytes("t")
		out["avro "+c] = write(t, trevni.AvroFormat, sc, opts, b).Bytes("t")
	}
	return out
}

// inBlock reports which bytes belong to blocks and so are covered by a checksum.
func inBlock(t testing.TB, data []byte) []bool {
	m := store.NewMemory(map[string][]byte{"f.trv": data})
	out := make([]bool, len(data))
	for n, err := range trevni.Format.Describe(t.Context(), format.Target{Tree: m, Name: "f.trv"},
		format.DescribeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(n.Name, "block[") && n.Depth == 2 {
			for i := n.At.Off; i < n.At.End(); i++ {
				out[i] = true
			}
		}
	}
	return out
}

// placed checks that an error has a place and a class.
func placed(t *testing.T, what string, err error) {
	t.Helper()
	var e *fault.Error
	if errors.As(err, &e) && strings.Contains(e.Reason, "cannot be there (at most") {
		return // levels that do not fit the type are found when the field is assembled; the error names the column
	}
	if !errors.As(err, &e) || e.At.Object != "f.trv" || e.Class == fault.Bug || e.Class == fault.Invalid {
		t.Errorf("%s: %v is not placed", what, err)
	}
}

// TestBitFlips: a bit of every byte of small files. Inside blocks, which have checksums, a flip is an error or changes
// nothing. Elsewhere there is an error with a place, or the values read change and describe still claims every byte, or
// nothing changes. Nothing panics.
func TestBitFlips(t *testing.T) {
	for name, data := range samples(t) {
		right, err := scanAll(t.Context(), data, scan.Spec{}, false)
		if err != nil {
			t.Fatal(name, err)
		}
		guarded := inBlock(t, data)
		bad := slices.Clone(data)
		for i := range data {
			for bit := i * 5 % 8; bit < 8; bit += 8 {
				bad[i] ^= 1 << bit
				got, err := scanAll(t.Context(), bad, scan.Spec{}, false)
				if err != nil {
					placed(t, name, err)
				} else if guarded[i] && got != right { // the last byte of a deflate stream has unused bits
					t.Errorf("%s: bit %d of byte %d, in a block, and no error", name, bit, i)
				}
				bad[i] ^= 1 << bit
			}
		}
	}
}

// TestCuts: a file cut anywhere yields an error with a place; intact data is still read.
func TestCuts(t *testing.T) {
	for name, data := range samples(t) {
		guarded := inBlock(t, data)
		for n := range data {
			if guarded[n] && n%5 != 0 {
				continue
			}
			_, err := scanAll(t.Context(), data[:n], scan.Spec{}, false)
			if err == nil {
				t.Errorf("%s cut at %d: no error", name, n)
				continue
			}
			placed(t, name, err)
			if codes, _ := findings(t, data[:n]); len(codes) == 0 {
				t.Errorf("%s cut at %d: verify reports nothing", name, n)
			}
		}
		// With a cut in the last block, all rows are returned, and lost cells are null or their rows left out.
		for _, policy := range []scan.Damaged{scan.SkipRows, scan.NullCells} {
			var losses []region.Loss
			_, err := scanAll(t.Context(), data[:len(data)-1],
				scan.Spec{Damaged: policy, Lost: func(l region.Loss) { losses = append(losses, l) }}, false)
			if err != nil || len(losses) == 0 {
				t.Errorf("%s, policy %d: %v, %v", name, policy, losses, err)
			}
		}
	}
}

// TestRecover: files with a damaged magic, start or row count are recovered.
func TestRecover(t *testing.T) {
	for name, data := range samples(t) {
		right, err := scanAll(t.Context(), data, scan.Spec{}, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{0, 1, 2, 4, 11} { // of the magic, and of the row count
			bad := slices.Clone(data)
			bad[i] ^= 0x40
			if i == 11 {
				bad[i] ^= 0xc0
			}
			if got, err := scanAll(t.Context(), bad, scan.Spec{}, true); err != nil && i != 11 || err == nil &&
				got != right {
				t.Errorf("%s byte %d: %v, equal %t", name, i, err, got == right)
			}
		}
		starts := startsOf(t, data)
		bad := slices.Clone(data)
		bad[starts[1]+1] ^= 0x10
		if got, err := scanAll(t.Context(), bad, scan.Spec{}, true); err != nil || got != right {
			t.Errorf("%s, the second column's start: %v, equal %t", name, err, got == right)
		}
	}
}

// startsOf returns the offsets at which the starts of columns are stored.
func startsOf(t testing.TB, data []byte) (at []int64) {
	m := store.NewMemory(map[string][]byte{"f.trv": data})
	for n, err := range trevni.Format.Describe(t.Context(), format.Target{Tree: m, Name: "f.trv"},
		format.DescribeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(n.Name, "column-start[") {
			at = append(at, n.At.Off)
		}
	}
	return at
}

// TestSeek: a search in a sorted column, and the search for a row, read only the blocks that they need: the block
// itself, and those at the boundaries of skipped ranges.
func TestSeek(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int32}}, nil)
	own := write(t, trevni.AvroFormat, sc, map[string]string{"block-size": "1000", "first-values": "k"},
		countingBatch(sc, 20000)).Bytes("t")
	java := corpusFile(t, "v1.12.2/values_multi_deflate.trv")
	for _, c := range []struct {
		data      []byte
		sorted    map[string]string
		column    string
		filter    string
		rows      int64
		blocks    int
		all       int
		from, one int64
	}{
		{own, nil, "k", "k = 12345", 1, 3, 40, 19000, 1},
		{own, nil, "k", "k < 10", 10, 2, 40, 0, 1},
		{own, nil, "k", "k > 19990", 9, 2, 40, 10000, 1},
		{own, nil, "k", "k = 50000", 0, 2, 40, 10000, 1},
		{java, map[string]string{"sorted": "k_string"}, "k_string", "k_string = 'k00012345'", 1, 3, 3, 16990, 1},
	} {
		m := store.NewMemory(map[string][]byte{"f.trv": c.data})
		count := func(spec scan.Spec) (rows int64, blocks int) {
			counter := store.NewCounter(m)
			src := openScan(t, counter, "f.trv", format.OpenOptions{Opts: c.sorted})
			counter.Reset()
			spec.Columns, spec.Ahead = []string{c.column}, -1
			for b, err := range scan.Run(t.Context(), src, spec, nil) {
				if err != nil {
					t.Fatal(err)
				}
				rows += b.NumRows()
			}
			seen := map[int64]bool{}
			for _, r := range counter.Reads() {
				if r.Len != 4<<10 { // not descriptors
					seen[r.Off] = true
				}
			}
			return rows, len(seen)
		}
		e, err := pred.Parse(c.filter)
		if err != nil {
			t.Fatal(err)
		}
		if rows, blocks := count(scan.Spec{Filter: e}); rows != c.rows || blocks > c.blocks {
			t.Errorf("%s: %d rows, %d blocks read", c.filter, rows, blocks)
		}
		if _, blocks := count(scan.Spec{}); blocks < c.all {
			t.Errorf("%s: only %d blocks in all", c.column, blocks)
		}
		if rows, blocks := count(scan.Spec{Rows: vec.Range{From: c.from, To: c.from + 5}}); rows != 5 || blocks != 1 {
			t.Errorf("five rows from %d: %d, %d blocks read", c.from, rows, blocks)
		}
	}
}

// TestWrongFirstValue: a search never relies on a wrong first value.
func TestWrongFirstValue(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int32}}, nil)
	b := countingBatch(sc, 2000)
	data := write(t, trevni.Format, sc, map[string]string{"block-size": "100", "first-values": "k",
		"codec": "null"}, b).Bytes("t")
	for _, k := range []string{"k = 777", "k < 30", "k >= 1990", "k = -5", "k between 900 and 1100"} {
		e, err := pred.Parse(k)
		if err != nil {
			t.Fatal(err)
		}
		right, err := scanAll(t.Context(), data, scan.Spec{Filter: e}, false)
		if err != nil {
			t.Fatal(err)
		}
		guarded := inBlock(t, data)
		for i := range data {
			if guarded[i] || i < 100 {
				continue
			}
			bad := slices.Clone(data)
			bad[i] ^= 2
			if got, err := scanAll(t.Context(), bad, scan.Spec{Filter: e}, false); err == nil && got != right {
				t.Errorf("%s, byte %d of the descriptors changed: %s, want %s", k, i, got, right)
			}
		}
	}
}
