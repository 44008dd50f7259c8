package trevni_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/trevni"
	"stoa/internal/effort"
	"stoa/internal/scan"
	"stoa/store"
)

// TestHeaderBit: for any flipped bit in a header with a checksum, recovery reports it and returns the rows unchanged
// or, if the header cannot be parsed, no rows.
func TestHeaderBit(t *testing.T) {
	for name, data := range samples(t) {
		right, err := scanAll(t.Context(), data, scan.Spec{}, false)
		if err != nil {
			t.Fatal(err)
		}
		head := int(binary.LittleEndian.Uint64(data[startsOf(t, data)[0]:]))
		repaired := 0
		step := effort.Step(29, 97)
		for bit := 0; bit < 8*head; bit += step {
			bad := slices.Clone(data)
			bad[bit/8] ^= 1 << (bit % 8)
			switch got, reported, err := recovered(t, bad); {
			case !reported:
				t.Errorf("%s, bit %d of byte %d: not reported", name, bit%8, bit/8)
			case err == nil && got != right:
				t.Errorf("%s, bit %d of byte %d of %d: other rows", name, bit%8, bit/8, head)
			case err == nil:
				repaired++
			}
		}
		if repaired*step < 8*head/2 {
			t.Errorf("%s: of %d bits only %d were repaired", name, 8*head/step, repaired)
		}
	}
}

// TestUnprovenUnits: if a header has more changed bits than its checksum can locate, nothing proves the scale of
// decimals and the unit of times: no value is returned with a wrong one, and the values of other columns are returned.
func TestUnprovenUnits(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "cost", Nullable: true,
		Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}}, {Name: "at", Nullable: true,
		Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
		{Name: "text", Nullable: true, Type: arrow.BinaryTypes.String}}, nil)
	const rows = 40
	for _, f := range []*format.Format{&trevni.Format, &trevni.AvroFormat} {
		whole := write(t, *f, sc, nil, flatBatch(t, sc, rows)).Bytes("t")
		right := cellsOf(t, whole, false)
		for _, x := range [][2]string{{", 2)", ", 3)"}, {`"scale":2`, `"scale":3`}, {"[us", "[ms"}, {"text", "tuxt"},
			{"timestamp-micros", "timestamp-millis"}} {
			if !bytes.Contains(whole, []byte(x[0])) {
				continue // of the other dialect
			}
			bad := bytes.ReplaceAll(whole, []byte(x[0]), []byte(x[1]))
			bad[bytes.Index(bad, []byte("stoa.header"))+len("stoa.header")+1] ^= 0x7
			got := cellsOf(t, bad, true)
			if lost := make([]string, rows); !slices.Equal(got[0], lost) || !slices.Equal(got[1], lost) ||
				!slices.Equal(got[2], right[2]) {
				t.Errorf("%s, %s: %.200q", f.Name, x[1], got)
			}
		}
		if slices.Max(right[0]) == "" || slices.Max(right[1]) == "" {
			t.Errorf("%s: nothing could be lost", f.Name)
		}
	}
}

// cellsOf returns the cells of a file by column, "" for null. With recovering they are recovered, with null in place of
// lost cells.
func cellsOf(t *testing.T, data []byte, recovering bool) (out [3][]string) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), "f.trv", stoa.OpenOptions{Recover: recovering,
		Tree: store.NewMemory(map[string][]byte{"f.trv": data})})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.NullCells}) {
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range b.Columns() {
			for k := range c.Len() {
				cell := ""
				if !c.IsNull(k) {
					cell = formattest.Cell(c, k)
				}
				out[i] = append(out[i], cell)
			}
		}
	}
	return out
}
