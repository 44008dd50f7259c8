package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	lib "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"stoa/format"
	"stoa/internal/scan"
	"stoa/internal/thrift"
)

const leveled = 100 // rows of withLevels' file

// withLevels returns a file of a required column with one data page v2, PLAIN and not compressed, which begins with
// levels, although its column has none.
func withLevels(t *testing.T, rep, def []byte) []byte {
	t.Helper()
	sc := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int32}}, nil)
	b := array.NewInt32Builder(memory.NewGoAllocator())
	for i := range int32(leveled) {
		b.Append(1000 + i)
	}
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(sc, &out, lib.NewWriterProperties(lib.WithDictionaryDefault(false)),
		pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(array.NewRecordBatch(sc, []arrow.Array{b.NewArray()}, leveled)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	page := slices.Concat(rep, def)
	for i := range uint32(leveled) {
		page = binary.LittleEndian.AppendUint32(page, 1000+i)
	}
	h := thrift.NewWriter(thrift.Compact)
	h.Struct(thrift.Item)
	h.I32(1, 3) // DATA_PAGE_V2
	h.I32(2, int32(len(page)))
	h.I32(3, int32(len(page)))
	h.Struct(8)
	for id, n := range []int32{leveled, 0, leveled, 0, int32(len(def)), int32(len(rep))} { // the 4th: PLAIN
		h.I32(int16(id+1), n)
	}
	h.Bool(7, false) // is_compressed
	h.End()
	h.End()
	page = append(h.Encoded(), page...)
	return refooter(t, out.Bytes(), page, func(m *metadata.FileMetaData, at int64) {
		c := m.RowGroups[0].Columns[0].MetaData
		c.DataPageOffset, c.EncodingStats = at, nil
		c.TotalCompressedSize, c.TotalUncompressedSize = int64(len(page)), int64(len(page))
	})
}

// TestLevelsOfNoBits: a column without levels may store them as one run, with a bit width of 0, of as many as it has
// values; any other bytes would shift the values.
func TestLevelsOfNoBits(t *testing.T) {
	run := func(n uint64) []byte { return binary.AppendUvarint(nil, n<<1) }
	for _, c := range []struct {
		rep, def []byte
		ok       bool
	}{{nil, nil, true}, {run(leveled), nil, true}, {nil, run(leveled), true}, {run(leveled), run(leveled), true},
		{run(leveled - 1), nil, false}, {nil, run(leveled + 1), false}, {append(run(leveled), 0), nil, false},
		{[]byte{0xff}, nil, false}, {[]byte{leveled/8<<1 | 1}, nil, false}} {
		what := fmt.Sprintf("repetition levels %x, definition levels %x", c.rep, c.def)
		b := withLevels(t, c.rep, c.def)
		r, err := openReader(t.Context(), targetOf(b), format.OpenOptions{})
		if err != nil {
			t.Fatal(what, err)
		}
		cells, _, _, err := (&damagedFile{starts: []int64{0}}).read(r, 0, scan.Fail)
		r.Close()
		if (err == nil) != c.ok {
			t.Errorf("%s: got error %v, want none: %t", what, err, c.ok)
		}
		if c.ok && (len(cells) != leveled || cells[0] != "1000" || cells[leveled-1] != "1099") {
			t.Errorf("%s: got cells %v", what, cells)
		}
	}
}

// TestRowsOfEarlyParquetRs: parquet-rs 0.x did not set the footer's number of rows. A wrong number by any other writer
// contradicts its row groups.
func TestRowsOfEarlyParquetRs(t *testing.T) {
	for by, ok := range map[string]bool{"parquet-rs version 0.3.0 (build b45ce7c)": true,
		"parquet-rs version 4.0.0": false} {
		b := refooter(t, withLevels(t, nil, nil), nil, func(m *metadata.FileMetaData, at int64) {
			m.NumRows, m.CreatedBy = 0, &by
		})
		r, err := open(t.Context(), targetOf(b), format.OpenOptions{})
		if (err == nil) != ok {
			t.Errorf("%s: got error %v, want none: %t", by, err, ok)
		}
		if err == nil {
			n := int64(0)
			for p, err := range r.Parts(t.Context(), format.Query{}) {
				if err != nil {
					t.Fatal(by, err)
				}
				n += p.Rows
			}
			if n != leveled {
				t.Errorf("%s: got %d rows, want %d", by, n, leveled)
			}
			r.Close()
		}
	}
}
