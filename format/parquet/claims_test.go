package parquet_test

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
	metadata "github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"stoa"
	"stoa/format"
	"stoa/format/parquet"
	"stoa/region"
	"stoa/store"
)

// threeGroups returns a file written by the library, without checksums, with 150 rows in three row groups: 0, 1, … in
// column a, 1000, 1001, … in column b and 2000, … in column c.
func threeGroups(t *testing.T) []byte {
	t.Helper()
	var fields []arrow.Field
	for _, name := range []string{"a", "b", "c"} {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64})
	}
	sc := arrow.NewSchema(fields, nil)
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(sc, &out, lib.NewWriterProperties(lib.WithMaxRowGroupLength(50)),
		pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i := range int64(150) {
		for k, f := range b.Fields() {
			f.(*array.Int64Builder).Append(1000*int64(k) + i)
		}
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	if err := w.Write(batch); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestChunksThatTwoClaim: if the footer locates a chunk in the bytes of another, no cell is returned in a wrong row,
// under any policy and from a recovered reader: all cells of the chunk are lost, and also those of the other, unless
// the other alone fits between its neighbours.
func TestChunksThatTwoClaim(t *testing.T) {
	whole := threeGroups(t)
	for name, c := range map[string]struct {
		edit func(m *metadata.FileMetaData)
		lost []string // group and column
	}{
		"a chunk of the row group before": {func(m *metadata.FileMetaData) {
			g := m.RowGroups
			g[1].Columns[1] = g[0].Columns[1]
		},
			[]string{"1 b"}},
		"a chunk of the row group after": {func(m *metadata.FileMetaData) {
			g := m.RowGroups
			g[1].Columns[1] = g[2].Columns[1]
		},
			[]string{"1 b"}},
		"of two columns": {func(m *metadata.FileMetaData) {
			g := m.RowGroups
			copy(g[2].Columns[1:], g[1].Columns[1:])
		},
			[]string{"2 b", "2 c"}},
		"of a whole row group": {func(m *metadata.FileMetaData) {
			g := m.RowGroups
			copy(g[2].Columns, g[1].Columns)
		},
			[]string{"1 a", "1 b", "1 c", "2 a", "2 b", "2 c"}},
		"of another column": {func(m *metadata.FileMetaData) {
			g := m.RowGroups
			g[1].Columns[2].MetaData.DataPageOffset = g[1].Columns[1].MetaData.DataPageOffset
			g[1].Columns[2].MetaData.DictionaryPageOffset = g[1].Columns[1].MetaData.DictionaryPageOffset
		}, []string{"1 b", "1 c"}},
	} {
		bad := withGroups(t, whole, c.edit)
		for _, recover := range []bool{false, true} {
			for _, policy := range []stoa.Damaged{stoa.Fail, stoa.SkipRows, stoa.NullCells} {
				what := fmt.Sprintf("%s, recover %v, policy %v", name, recover, policy)
				checkClaimed(t, what, bad, c.lost, policy, recover)
			}
		}
	}
}

// withGroups edits the row groups in the footer of a file.
func withGroups(t *testing.T, b []byte, edit func(*metadata.FileMetaData)) []byte {
	t.Helper()
	at := len(b) - 8 - int(binary.LittleEndian.Uint32(b[len(b)-8:]))
	m, err := metadata.NewFileMetaData(b[at:len(b)-8], nil)
	if err != nil {
		t.Fatal(err)
	}
	edit(m)
	out := bytes.NewBuffer(bytes.Clone(b[:at]))
	n, err := m.WriteTo(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.LittleEndian.AppendUint32(out.Bytes(), uint32(n)), "PAR1"...)
}

// checkClaimed reads under a policy: every cell returned is in its row, and the losses are those in lost.
func checkClaimed(t *testing.T, what string, b []byte, lost []string, policy stoa.Damaged, recover bool) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{
		Formats: []format.Format{parquet.Format}, Tree: store.NewMemory(map[string][]byte{"t": b}), Recover: recover})
	if err != nil {
		t.Fatal(what, err)
	}
	defer tab.Close()
	var losses []string
	spec := stoa.ScanSpec{Damaged: policy, Lost: func(l region.Loss) {
		losses = append(losses, fmt.Sprint(l.Group, " ", l.Column))
	}}
	rows, nulls := 0, 0
	for batch, rerr := range tab.Scan(t.Context(), spec) {
		if err = rerr; err != nil {
			break
		}
		ids := batch.Column(0).(*array.Int64)
		for i := range int(batch.NumRows()) {
			rows++
			for k := range 3 {
				x := batch.Column(k).(*array.Int64)
				switch {
				case x.IsNull(i):
					nulls++
				case x.Value(i) < 1000*int64(k) || x.Value(i) >= 1000*int64(k)+150,
					ids.IsValid(i) && x.Value(i) != 1000*int64(k)+ids.Value(i):
					t.Fatalf("%s: row %d has %v in column %d, expected that of row %v", what, i, x.Value(i), k,
						ids.Value(i))
				}
			}
		}
	}
	slices.Sort(losses)
	groups := map[byte]bool{}
	for _, l := range lost {
		groups[l[0]] = true
	}
	switch policy {
	case stoa.Fail:
		if err == nil {
			t.Errorf("%s: %d rows and no error", what, rows)
		}
	case stoa.SkipRows:
		if rows != 150-50*len(groups) || err != nil {
			t.Errorf("%s: %d rows, expected %d: %v", what, rows, 150-50*len(groups), err)
		}
	case stoa.NullCells:
		if len(losses) == 0 || rows+nulls/3 < 150 || err != nil {
			t.Errorf("%s: %d rows, %d nulls, lost %v: %v", what, rows, nulls, losses, err)
		}
		if losses = slices.Compact(losses); !slices.Equal(losses, lost) {
			t.Errorf("%s: lost %v, expected %v", what, losses, lost)
		}
	}
}
