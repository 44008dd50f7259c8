package iceberg

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"stoa/format/iceberg/internal/meta"
	"stoa/format/internal/lake"
)

// TestWhichDeletesApply: position deletes apply to data files that are not newer, of the same spec and partition; or,
// if all are about one data file, to that one. So the specification (scan planning), and for files about one the
// reference implementation (DeleteFileIndex). Every combination is tried.
func TestWhichDeletesApply(t *testing.T) {
	const data = "d/a.parquet"
	partition := func(p int32) map[string]any { return map[string]any{"p": p} }
	op := &snapshotReader{tableFiles: &tableFiles{table: &meta.Table{Specs: []meta.Spec{{ID: 0}, {ID: 1}}}}}
	for c := range 1 << 6 {
		is := func(bit int) bool { return c>>bit&1 == 1 }
		newer, sameSpec, sameValues, bounded, referenced, other := is(0), is(1), is(2), is(3), is(4), is(5)
		d := &live{seq: 5, spec: 1, DataFile: meta.DataFile{Partition: partition(1), Lower: map[int][]byte{},
			Upper: map[int][]byte{}}}
		f := &live{seq: 5, spec: 1, name: data, DataFile: meta.DataFile{Partition: partition(1), Path: data}}
		if newer {
			f.seq = 6
		}
		if !sameSpec {
			f.spec = 0
		}
		if !sameValues {
			f.Partition = partition(2)
		}
		d.Lower[pathID], d.Upper[pathID] = []byte("d/a.parquet"), []byte("d/b.parquet")
		if bounded {
			d.Upper[pathID] = d.Lower[pathID]
		}
		if referenced {
			d.ReferencedFile = data
		}
		if other {
			d.ReferencedFile = "d/other.parquet"
		}
		p := &positions{op: op, bySeq: map[string][]deletedRow{data: {{7, d}, {3, d}, {7, d}}}}
		in := &lake.Input{}
		p.assign(f, in)
		want := !newer && !other && (sameSpec && sameValues || bounded || referenced)
		name := fmt.Sprintf("newer data %v, same spec %v, same values %v, one path by bounds %v, referenced %v, "+
			"another %v", newer, sameSpec, sameValues, bounded, referenced, other)
		if (in.Deleted != nil) != want {
			t.Errorf("%s: applied %v, want %v", name, in.Deleted != nil, want)
		} else if want {
			if rows, err := in.Deleted(t.Context()); err != nil || !slices.Equal(rows, []int64{3, 7}) {
				t.Errorf("%s: rows %v, %v", name, rows, err)
			}
		}
	}
}

// TestPartitionsOfDecimals: partitions are the same if they have the same decimal, however many bytes the digits of the
// column needed when it was written; bytes are the same only if all of them are.
func TestPartitionsOfDecimals(t *testing.T) {
	op := &snapshotReader{tableFiles: &tableFiles{table: &meta.Table{
		Schemas: []meta.Schema{{Fields: []meta.Field{{ID: 1, Type: meta.Type{Name: "decimal(9, 2)"}},
			{ID: 2, Type: meta.Type{Name: "binary"}}}}},
		Specs: []meta.Spec{{ID: 0, Fields: []meta.SpecField{{Source: 1, Name: "p", Transform: "identity"}}},
			{ID: 1, Fields: []meta.SpecField{{Source: 2, Name: "p", Transform: "identity"}}}}}}}
	numbers := []int64{0, 1, -1, 127, 128, -128, -129, 1 << 20, -1 << 20}
	wide := func(n int64, bytes int) map[string]any {
		b := binary.BigEndian.AppendUint64(nil, uint64(n))
		fill := byte(n >> 63)
		for len(b) < bytes {
			b = append([]byte{fill}, b...)
		}
		return map[string]any{"p": b[len(b)-bytes:]}
	}
	for _, a := range numbers {
		for _, b := range numbers {
			for _, widths := range [][2]int{{4, 4}, {4, 13}, {13, 4}, {16, 9}} {
				x, y := wide(a, widths[0]), wide(b, widths[1])
				if got := op.samePartition(0, x, y); got != (a == b) {
					t.Errorf("decimals %d and %d in %v bytes: got %v", a, b, widths, got)
				}
				if got := op.samePartition(1, x, y); got != (a == b && widths[0] == widths[1]) {
					t.Errorf("bytes %v and %v: got %v", x, y, got)
				}
			}
		}
	}
	if op.samePartition(0, map[string]any{"p": nil}, wide(0, 4)) {
		t.Error("null is 0")
	}
}
