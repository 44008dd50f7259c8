package laws_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/store"
)

// TestFewBytes: if a few bytes are inserted or removed in a Parquet file that has neither indexes nor copies of its
// metadata, no wrong cell is read, and the row groups before them are read as before. pyarrow wrote the files, with and
// without checksums: a = 7919 i mod 10007, b = 104729 i mod 1000003, c = -i, 60 rows of 240 in a row group.
func TestFewBytes(t *testing.T) {
	const rows, groups = 240, 4
	table := groupsTable(rows)
	defer table.Release()
	for _, name := range []string{"groups.crc.parquet", "groups.plain.parquet"} {
		whole, err := os.ReadFile("internal/laws/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if wrong, lost := compare(t.Context(), whole, table, false); wrong != "" || lost > 0 {
			t.Fatalf("%s: %s, lost %d", name, wrong, lost)
		}
		ends := groupEnds(t, whole, groups)
		step := 1
		if testing.Short() {
			step = 37
		}
		for at := 5; at < ends[groups-1]-11; at += step {
			n := 1 + at%11
			insert := slices.Insert(slices.Clone(whole), at, slices.Repeat([]byte{0x15}, n)...)
			remove := slices.Delete(slices.Clone(whole), at, at+n)
			for how, bad := range map[string][]byte{"inserted": insert, "removed": remove} {
				if wrong, _ := compare(t.Context(), bad, table, false); wrong != "" {
					t.Errorf("%s: %d bytes %s at %d: %s", name, n, how, at, wrong)
				}
				// without checksums, the column before the damage is given up as well
				before := 0
				for before < groups && ends[before] <= at {
					before++
				}
				if got := wholeRows(t, bad); got < (before-1)*rows/groups || name == "groups.crc.parquet" &&
					got < before*rows/groups {
					t.Errorf("%s: %d bytes %s at %d, behind %d row groups: got %d rows", name, n, how, at, before, got)
				}
			}
		}
	}
}

// groupsTable returns what pyarrow wrote.
func groupsTable(rows int) arrow.RecordBatch {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "b", Type: arrow.PrimitiveTypes.Int64}, {Name: "c", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i := range int64(rows) {
		b.Field(0).(*array.Int64Builder).Append(i * 7919 % 10007)
		b.Field(1).(*array.Int64Builder).Append(i * 104729 % 1000003)
		b.Field(2).(*array.Int64Builder).Append(-i)
	}
	return b.NewRecordBatch()
}

// groupEnds returns where each row group ends: with its third column.
func groupEnds(t *testing.T, file []byte, groups int) (ends []int) {
	t.Helper()
	for n, err := range stoa.Describe(t.Context(), "t", stoa.DescribeOptions{OpenOptions: stoa.OpenOptions{
		Tree: store.NewMemory(map[string][]byte{"t": file})}}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(n.Name, "row_groups[") && strings.HasSuffix(n.Name, "].c") && n.Depth <= 1 {
			ends = append(ends, int(n.At.End()))
		}
	}
	if len(ends) != groups {
		t.Fatalf("got %d row groups, want %d", len(ends), groups)
	}
	return ends
}

// wholeRows returns how many rows have no damaged cell.
func wholeRows(t *testing.T, file []byte) (rows int) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"t": file})})
	if err != nil {
		return 0
	}
	defer tab.Close()
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.SkipRows}) {
		if err != nil {
			return rows
		}
		rows += int(b.NumRows())
	}
	return rows
}
