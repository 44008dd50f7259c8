package laws_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/store"
)

// alikeColumns returns rows whose columns have encodings of equal sizes, but no value in common.
func alikeColumns(rows int) arrow.RecordBatch {
	fields := make([]arrow.Field, 5)
	for i := range fields {
		fields[i] = arrow.Field{Name: string(rune('a' + i)), Type: arrow.PrimitiveTypes.Int64}
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for col := range fields {
		for row := range rows {
			b.Field(col).(*array.Int64Builder).Append(int64(1+col)<<40 + int64(row)*7919)
		}
	}
	return b.NewRecordBatch()
}

// TestPagesOfOtherColumns: in a file with checksums, as many bytes are inserted or removed as lie between two of its
// structures. Whole pages of one column, or of another row group, are then where the metadata has those of another: no
// value of theirs comes out there.
func TestPagesOfOtherColumns(t *testing.T) {
	const rows = 600
	table := alikeColumns(rows)
	defer table.Release()
	for _, x := range []struct {
		format string
		opts   map[string]string
	}{
		{"redfile", map[string]string{"compression": "none"}},
		{"redfile", map[string]string{"compression": "none", "index": "false", "sync": "0"}},
		{"redfile", map[string]string{"compression": "none", "index": "false", "generation": "A"}},
		{"redfile", map[string]string{"compression": "none", "page-size": "1000", "row-group-rows": "200"}},
		{"parquet", map[string]string{"compression": "none", "dictionary": "false", "encoding": "plain"}},
		{"parquet", map[string]string{"compression": "none", "dictionary": "false", "encoding": "plain",
			"row-group-rows": "200", "page-size": "1000"}},
		{"parquet", map[string]string{"compression": "none", "dictionary": "false", "encoding": "plain",
			"page-index": "false"}},
		{"trevni", map[string]string{"codec": "null", "checksum": "crc32"}},
		{"trevni-avro", map[string]string{"codec": "null", "checksum": "crc32"}},
		{"carbon", nil},
	} {
		mem := store.NewMemory(nil)
		w, err := stoa.Create(t.Context(), "t", table.Schema(), stoa.CreateOptions{To: x.format, Opts: x.opts,
			Sink: mem.Sink("t")})
		if err == nil {
			err = w.Write(t.Context(), table)
		}
		if err == nil {
			_, err = w.Close(t.Context())
		}
		if err != nil {
			t.Errorf("%s %v: %v", x.format, x.opts, err)
			continue
		}
		whole := mem.Bytes("t")
		starts := structures(t, whole)
		places := []int{starts[0], starts[0] + 20}
		for _, i := range []int{1, len(starts) / 4, len(starts) / 2} {
			places = append(places, starts[i], starts[i]+20)
		}
		tried, other := 0, 0
		for _, n := range distances(starts) {
			for _, at := range places {
				for op, bad := range map[string][]byte{
					"inserted": slices.Insert(bytes.Clone(whole), at, bytes.Repeat([]byte{0x5a}, n)...),
					"doubled":  slices.Insert(bytes.Clone(whole), at, whole[at:min(at+n, len(whole))]...),
					"removed":  slices.Delete(bytes.Clone(whole), at, min(at+n, len(whole)-200)),
				} {
					tried++
					for _, recover := range []bool{false, true} {
						if recover && x.format == "carbon" && op == "doubled" {
							continue // nothing tells a copied blocklet from one with the same rows
						}
						wrong, lost := compare(t.Context(), bad, table, recover)
						if !recover {
							other += lost
						}
						if wrong != "" {
							t.Errorf("%s %v: %d bytes %s at %d, recover %v: %s", x.format, x.opts, n, op, at, recover,
								wrong)
						}
					}
				}
			}
		}
		t.Logf("%s %v: %d changes, %d without all cells", x.format, x.opts, tried, other)
		if other < tried/2 {
			t.Errorf("%s %v: only %d of %d changes cost a cell", x.format, x.opts, other, tried)
		}
	}
}

// structures returns the places where structures of a file begin, without those of its last 200 bytes.
func structures(t *testing.T, whole []byte) []int {
	t.Helper()
	at := map[int]bool{}
	for n, err := range stoa.Describe(t.Context(), "t", stoa.DescribeOptions{OpenOptions: stoa.OpenOptions{
		Tree: store.NewMemory(map[string][]byte{"t": whole})}}) {
		if err != nil {
			t.Fatal(err)
		}
		if n.Inner < 0 && n.At.Len > 64 && n.At.Off > 0 && n.At.Off < int64(len(whole))-200 {
			at[int(n.At.Off)] = true
		}
	}
	if len(at) < 3 {
		t.Fatalf("%d structures", len(at))
	}
	return slices.Sorted(maps.Keys(at))
}

// distances returns the different distances of starts, at most 40 of them, fewer in short tests.
func distances(starts []int) []int {
	set := map[int]bool{}
	for i, from := range starts {
		for _, to := range starts[i+1:] {
			set[to-from] = true
		}
	}
	all := slices.Sorted(maps.Keys(set))
	few := 40
	if testing.Short() {
		few = 6
	}
	var out []int
	for i := 0; i < len(all); i += len(all)/few + 1 {
		out = append(out, all[i])
	}
	return out
}

// compare reads a file under the policy null-cells. wrong describes the first cell that is neither null nor as in
// table; lost is 1 if the file could not be read, or cells are missing.
func compare(ctx context.Context, file []byte, table arrow.RecordBatch, recover bool) (wrong string,
	lost int) {
	o := stoa.OpenOptions{Recover: recover, Tree: store.NewMemory(map[string][]byte{"t": file})}
	tab, err := stoa.Open(ctx, "t", o)
	if err != nil {
		return "", 1
	}
	defer tab.Close()
	row := 0
	for b, err := range tab.Scan(ctx, stoa.ScanSpec{Damaged: stoa.NullCells}) {
		if err != nil {
			return "", 1
		}
		for i := range int(b.NumRows()) {
			for k := range int(b.NumCols()) {
				name := b.ColumnName(k)
				at := table.Schema().FieldIndices(name)
				if len(at) == 0 {
					return "", 1 // recovery lost the names, and says so
				}
				col := table.Column(at[0]).(*array.Int64)
				switch got := b.Column(k).(*array.Int64); {
				case got.IsNull(i):
					lost = 1
				case row >= col.Len() || got.Value(i) != col.Value(row):
					return fmt.Sprintf("row %d of column %s has %d", row, name, got.Value(i)), 1
				}
			}
			row++
		}
	}
	return "", lost
}
