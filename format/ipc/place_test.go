package ipc

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
	"stoa/vec"
)

// pieces returns the messages of a stream of three batches of 100 numbers, or of dictionary words: the schema (with any
// dictionaries before the first batch), the batches, the final batch without rows, and the end mark.
func pieces(t *testing.T, words bool) [][]byte {
	t.Helper()
	typ := arrow.DataType(arrow.PrimitiveTypes.Int64)
	if words {
		typ = &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.PrimitiveTypes.Int64}
	}
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: typ}}, nil)
	var b bytes.Buffer
	w := NewStreamWriter(&b, sc)
	all := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	var ends []int
	for k := range 3 {
		for i := range 100 {
			if d, ok := all.Field(0).(*array.Int64DictionaryBuilder); ok {
				if err := d.Append(int64(i)); err != nil {
					t.Fatal(err)
				}
			} else {
				all.Field(0).(*array.Int64Builder).Append(int64(k*100 + i))
			}
		}
		if err := w.Write(all.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, b.Len())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	one := ends[2] - ends[1]
	cuts := []int{ends[0] - one, ends[0], ends[1], ends[2], b.Len() - 8, b.Len()}
	out, at := [][]byte{}, 0
	for _, to := range cuts {
		out, at = append(out, b.Bytes()[at:to]), to
	}
	return out
}

// outcome returns the number of rows read from a stream, the rows reported as lost, and whether anything is reported.
func outcome(t *testing.T, stream []byte, opts map[string]string) (rows, lost int64, reported bool) {
	t.Helper()
	tree := store.NewMemory(map[string][]byte{"t": stream})
	r, err := open(t.Context(), format.Target{Tree: tree, Name: "t"}, format.OpenOptions{Opts: opts})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for rec, err := range r.(format.Batcher).Batches(t.Context(), format.RowGroup{Rows: -1},
		format.Query{Cols: []int{0}},
		vec.Range{}, nil) {
		var exact interface{ LostRows() (from, to int64) }
		switch {
		case err == nil:
			rows += rec.NumRows()
		case !errors.Is(err, fault.Corrupt):
			t.Fatal(err)
		case errors.As(err, &exact):
			from, to := exact.LostRows()
			lost, reported = lost+to-from, true
		default:
			reported = true
		}
	}
	return rows, lost, reported
}

// TestPlaces: in a stream written by stoa, whole batches that are missing, repeated or swapped are reported, although
// every message is intact and they are contiguous; also the last ones.
func TestPlaces(t *testing.T) {
	for _, words := range []bool{false, true} {
		p := pieces(t, words)
		for what, c := range map[string]struct {
			of         []int
			rows, lost int64
			reported   bool
		}{
			"whole":                    {[]int{0, 1, 2, 3, 4, 5}, 300, 0, false},
			"the first is gone":        {[]int{0, 2, 3, 4, 5}, 200, 100, true},
			"one is gone":              {[]int{0, 1, 3, 4, 5}, 200, 100, true},
			"two are gone":             {[]int{0, 3, 4, 5}, 100, 200, true},
			"the last is gone":         {[]int{0, 1, 2, 4, 5}, 200, 100, true},
			"all are gone":             {[]int{0, 4, 5}, 0, 300, true},
			"twice":                    {[]int{0, 1, 2, 2, 3, 4, 5}, 300, 0, true},
			"in each other's place":    {[]int{0, 2, 1, 3, 4, 5}, 200, 100, true},
			"the end is gone":          {[]int{0, 1, 2, 3, 5}, 300, 0, true},
			"the last and the end are": {[]int{0, 1, 2, 5}, 200, 0, true},
			"after the end":            {[]int{0, 1, 2, 3, 4, 3, 5}, 300, 0, true},
		} {
			var stream []byte
			for _, k := range c.of {
				stream = append(stream, p[k]...)
			}
			rows, lost, reported := outcome(t, stream, nil)
			if rows != c.rows || lost != c.lost || reported != c.reported {
				t.Errorf("%s (words: %v): %d rows, %d lost, reported: %v", what, words, rows, lost, reported)
			}
			if _, _, reported := outcome(t, stream, map[string]string{"partial": "true"}); reported {
				t.Errorf("%s: reported of a part of a stream", what)
			}
			found := false
			for f := range Format.Verify(t.Context(),
				format.Target{Tree: store.NewMemory(map[string][]byte{"t": stream}),
					Name: "t"}, format.OpenOptions{}) {
				found = found || f.Severity > 0 && f.Code == "arrow.batch"
			}
			if found != c.reported {
				t.Errorf("%s: verify reports: %v", what, found)
			}
		}
		// a changed number costs its own batch, and no other
		at := bytes.LastIndex(p[2], []byte("100"))
		p[2] = slices.Clone(p[2])
		p[2][at] = '7'
		if rows, _, reported := outcome(t, slices.Concat(p...), nil); rows != 200 || !reported {
			t.Errorf("a damaged number: %d rows, reported: %v", rows, reported)
		}
	}
}
