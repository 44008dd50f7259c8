package trevni_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
)

// TestUnprovenRowCounts: descriptors whose own checksum is wrong, and whose blocks prove nothing, do not determine the
// number of rows: recovery reports only the header's number as lost.
func TestUnprovenRowCounts(t *testing.T) {
	for name, data := range samples(t) {
		rows := int64(binary.LittleEndian.Uint64(data[4:]))
		step := 3
		if testing.Short() {
			step = 13
		}
		for at := 16; at < int(startsOf(t, data)[0])+200; at += step {
			bad := slices.Insert(slices.Clone(data), at, data[at])
			bad = bad[:len(bad)-len(bad)/4]
			_, found, err := trevni.Format.Recover(t.Context(), format.Target{
				Tree: store.NewMemory(map[string][]byte{"f.trv": bad}), Name: "f.trv"}, format.OpenOptions{})
			if err != nil {
				continue
			}
			for _, f := range found {
				if f.Lost > rows {
					t.Errorf("%s, byte %d twice: %d rows reported as lost of %d: %s", name, at, f.Lost, rows, f.Message)
				}
			}
		}
	}
}

// TestRowsWithoutColumns: an unconfirmed number of rows in a file without columns does not make reading go on forever.
func TestRowsWithoutColumns(t *testing.T) {
	for rows, refused := range map[int]bool{0: false, 3: false, 1 << 20: false, 1 << 25: true, 1 << 56: true} {
		file := handFile(2, int64(rows), handMeta(), nil)
		tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f.trv": file}), Name: "f.trv"}
		if _, err := trevni.Format.Open(t.Context(), tg, format.OpenOptions{}); errors.Is(err, fault.Limit) != refused {
			t.Errorf("%d rows: %v", rows, err)
		}
		_, _, err := trevni.Format.Recover(t.Context(), tg, format.OpenOptions{})
		if errors.Is(err, fault.Limit) != refused {
			t.Errorf("%d rows, recovered: %v", rows, err)
		}
	}
}

// TestTwoWrongCounts: the header has a wrong number of rows, and a column does not begin where it should. The other
// columns agree with each other, and recovery reports only rows among theirs as lost.
func TestTwoWrongCounts(t *testing.T) {
	for _, codec := range []string{"null", "deflate", "snappy", "bzip2"} {
		data := corpusFile(t, "v1.12.2/all_"+codec+"_null.trv")
		rows := int64(binary.LittleEndian.Uint64(data[4:]))
		for column, at := range startsOf(t, data) {
			for _, b := range []int64{0, 1, 6} {
				bad := slices.Clone(data)
				bad[5] ^= 4
				bad[at+b] ^= 128
				var most int64
				_, err := scanAll(t.Context(), bad, scan.Spec{Damaged: scan.SkipRows, Lost: func(l region.Loss) {
					most = max(most, l.Rows[1])
				}}, true)
				if err != nil || most > rows {
					t.Errorf("%s, byte %d of the start of column %d: %d rows reported as lost of %d (%v)",
						codec, b, column, most, rows, err)
				}
			}
		}
	}
}
