package trevni_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni"
	"stoa/internal/scan"
	"stoa/region"
)

// For repeated columns of the wiki's dialect the descriptors count entries, and only the levels tell the number of
// rows.

// TestRecoverRepeated: zeros over the count of a repeated column's blocks lose that column and no other.
func TestRecoverRepeated(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int64},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	data := unsealed(write(t, trevni.Format, sc, map[string]string{"block-size": "200"},
		flatBatch(t, sc, 60)).Bytes("t"))
	at := int64(binary.LittleEndian.Uint64(data[startsOf(t, data)[1]:]))
	others := func(null bool) (rows string) {
		var parts []string
		for k, name := range []string{"i", "l", "s"} {
			one, err := scanAll(t.Context(), data, scan.Spec{Columns: []string{name}}, false)
			if err != nil {
				t.Fatal(err)
			}
			if k == 1 && null {
				one = "[" + strings.TrimSuffix(strings.Repeat("null,", 60), ",") + "]"
			}
			parts = append(parts, one)
		}
		return strings.Join(parts, "")
	}
	if got, err := scanAll(t.Context(), data, scan.Spec{}, false); err != nil || got != others(false) {
		t.Fatalf("%v: %s, want %s", err, got, others(false))
	}
	bad := slices.Clone(data)
	clear(bad[at : at+4])
	for _, recovering := range []bool{false, true} {
		var lost []region.Loss
		spec := scan.Spec{Damaged: scan.NullCells, Lost: func(l region.Loss) { lost = append(lost, l) }}
		if got, err := scanAll(t.Context(), bad, spec, recovering); err != nil ||
			strings.Join(strings.Fields(got), "") != others(true) {
			t.Errorf("recovering %t: %v: %s", recovering, err, got)
		}
		if len(lost) != 1 || lost[0].Column != "l" || lost[0].Rows != [2]int64{0, 60} {
			t.Errorf("recovering %t: reported %+v", recovering, lost)
		}
	}
	for _, depth := range []format.Depth{format.Quick, format.Sums, format.Deep} {
		if got, all := findingsAt(t, bad, depth); !slices.Contains(got, "trevni.column.rows") ||
			all[0].Column != "l.list.item" || all[0].At.Off != at {
			t.Errorf("depth %d: %+v", depth, all)
		}
	}
}

// TestRowsOfRepeated: the number of rows of a file with only repeated columns is compared with the rows that begin in
// them, and recovery uses the latter.
func TestRowsOfRepeated(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
		{Name: "m", Type: arrow.ListOf(arrow.BinaryTypes.String)}}, nil)
	data := unsealed(write(t, trevni.Format, sc, nil, flatBatch(t, sc, 60)).Bytes("t"))
	right, err := scanAll(t.Context(), data, scan.Spec{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if got, all := findings(t, data); len(got) > 0 {
		t.Errorf("the whole file: %+v", all)
	}
	for _, rows := range []uint64{0, 1, 59, 61, 1 << 40, 1 << 62} {
		bad := slices.Clone(data)
		binary.LittleEndian.PutUint64(bad[4:], rows)
		for _, depth := range []format.Depth{format.Sums, format.Deep} {
			want := [2]int64{0, int64(rows)}
			if rows > 60 {
				want[0] = 60
			}
			got, all := findingsAt(t, bad, depth)
			if !slices.Equal(got, []string{"trevni.column.rows"}) || len(all) != 2 {
				t.Fatalf("%d rows, depth %d: %+v", rows, depth, all)
			}
			for i, f := range all {
				if f.Column != []string{"l.list.item", "m.item"}[i] || rows < 1<<40 && f.Rows != want {
					t.Errorf("%d rows, depth %d: %+v, want rows %v", rows, depth, f, want)
				}
			}
		}
		for _, policy := range []scan.Damaged{scan.SkipRows, scan.NullCells} {
			if got, err := scanAll(t.Context(), bad, scan.Spec{Damaged: policy}, true); err != nil || got != right {
				t.Errorf("%d rows: %v: %s", rows, err, got)
			}
		}
		if rows >= 1<<40 {
			_, err := scanAll(t.Context(), bad, scan.Spec{Damaged: scan.NullCells}, false)
			if placed(t, "open", err); err == nil {
				t.Errorf("%d rows are read", rows)
			}
		}
	}
}

// TestEntriesThatDoNotFit: a descriptor that states more entries than the bytes of its block can hold is damage,
// whatever the limits are, and loses only its column.
func TestEntriesThatDoNotFit(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int64},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true}}, nil)
	data := unsealed(write(t, trevni.Format, sc, nil, flatBatch(t, sc, 60)).Bytes("t"))
	right, err := scanAll(t.Context(), data, scan.Spec{Columns: []string{"i"}}, false)
	if err != nil {
		t.Fatal(err)
	}
	at := binary.LittleEndian.Uint64(data[startsOf(t, data)[1]:])
	binary.LittleEndian.PutUint32(data[at+4:], 1<<30) // entries of its first block
	got, err := scanAll(t.Context(), data, scan.Spec{}, false)
	if placed(t, "cat", err); !errors.Is(err, fault.Corrupt) {
		t.Errorf("reading: %s, %v", got, err)
	}
	if got, err := scanAll(t.Context(), data, scan.Spec{Damaged: scan.NullCells}, true); err != nil ||
		!strings.HasPrefix(got, right) {
		t.Errorf("recovery: %v: %s", err, got)
	}
}
