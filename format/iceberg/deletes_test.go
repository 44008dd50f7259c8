package iceberg

import (
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
		p := &positions{bySeq: map[string][]deletedRow{data: {{7, d}, {3, d}, {7, d}}}}
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
