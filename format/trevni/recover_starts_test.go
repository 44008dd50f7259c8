package trevni_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
)

// TestRecoverZeroedStarts: zeros over the starts of columns lose nothing, because the columns are adjacent. With zeros
// over the descriptors of the first column as well, that column is lost, and the others are found after it.
func TestRecoverZeroedStarts(t *testing.T) {
	for name, data := range samples(t) {
		right, err := scanAll(t.Context(), data, scan.Spec{}, false)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := blockOf(t, data, 0, 0)
		starts := startsOf(t, data)
		from, to := starts[0], starts[len(starts)-1]+8
		bad := slices.Clone(data)
		clear(bad[from:to])
		if got, err := scanAll(t.Context(), bad, scan.Spec{}, true); err != nil || got != right {
			t.Errorf("%s, all starts: %v, equal %t", name, err, got == right)
		}
		clear(bad[to:first.Off]) // the first column's count and descriptors, too
		others := right[strings.IndexByte(right, ']')+1:]
		got, err := scanAll(t.Context(), bad, scan.Spec{Damaged: scan.NullCells}, true)
		if err != nil || !strings.HasSuffix(got, others) || got == right {
			t.Errorf("%s, without the first column: %v, equal %t", name, err, strings.HasSuffix(got, others))
		}
	}
}

// TestRecoverWithoutDescriptors: zeros over the descriptors of a column without checksums lose that column and no
// other: a column after it, at the offset in the header, proves that no bytes were inserted or removed. For the last
// column nothing proves that, so its values are not returned.
func TestRecoverWithoutDescriptors(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Float64), Nullable: true},
		{Name: "d", Type: arrow.PrimitiveTypes.Float64}}, nil)
	for _, codec := range []string{"null", "snappy"} {
		opts := map[string]string{"codec": codec, "checksum": "null", "block-size": "60"}
		data := write(t, trevni.Format, sc, opts, flatBatch(t, sc, 60)).Bytes("t")
		starts := startsOf(t, data)
		all, err := scanAll(t.Context(), data, scan.Spec{}, false)
		if err != nil {
			t.Fatal(err)
		}
		for k := range starts[:len(starts)-1] {
			from := int64(binary.LittleEndian.Uint64(data[starts[k]:]))
			block, _, _ := blockOf(t, data, k, 0)
			bad := slices.Clone(data)
			clear(bad[from:block.Off])
			got, err := scanAll(t.Context(), bad, scan.Spec{Damaged: scan.NullCells}, true)
			if err != nil {
				t.Errorf("%s, column %d: %v", codec, k, err)
				continue
			}
			have := strings.Split(got, "][")
			for c, want := range strings.Split(all, "][") {
				if have := have[c]; (have == want) == (c == k) {
					t.Errorf("%s, without column %d: column %d is %s, was %s", codec, k, c, have, want)
				}
			}
		}
	}
}

// TestRecoverUnnamedChecksums: if the word that states that blocks have checksums is damaged, the checksums are
// recognized by the space that they take, and are compared: all values are recovered, except those of a block that is
// damaged as well.
func TestRecoverUnnamedChecksums(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int64},
		{Name: "d", Type: arrow.PrimitiveTypes.Float64}}, nil)
	for key, f := range map[string]format.Format{"ChecksumAlgorithm": trevni.Format,
		"trevni.checksum": trevni.AvroFormat} {
		opts := map[string]string{"block-size": "200", "codec": "null"}
		data := write(t, f, sc, opts, flatBatch(t, sc, 90)).Bytes("t")
		right, err := scanAll(t.Context(), data, scan.Spec{}, false)
		at := bytes.Index(data, []byte(key))
		if err != nil || at < 0 {
			t.Fatal(err, at)
		}
		bad := slices.Clone(data)
		copy(bad[at+4:], "????")
		got, err := scanAll(t.Context(), bad, scan.Spec{Damaged: scan.SkipRows}, true)
		if err != nil || got != right {
			t.Errorf("%s: %v, equal %t", key, err, got == right)
		}
		block, _, _ := blockOf(t, data, 0, 1)
		bad[block.Off+9] ^= 0x10
		got, err = scanAll(t.Context(), bad, scan.Spec{Damaged: scan.NullCells}, true)
		if want := strings.Split(right, "]")[1]; err != nil || !strings.Contains(got, want) {
			t.Errorf("%s, and a block: %v, the other column is there %t", key, err, strings.Contains(got, want))
		}
		for i, v := range strings.Split(strings.Trim(strings.Split(got, "]")[0], "["), ",") {
			if w := strings.Split(strings.Trim(strings.Split(right, "]")[0], "["), ",")[i]; v != w && v != "null" {
				t.Errorf("%s, and a block: value %d is %s, was %s", key, i, v, w)
			}
		}
	}
}

// TestNoColumnsAndBytes: a header without columns that is followed by bytes is not an empty table.
func TestNoColumnsAndBytes(t *testing.T) {
	data := append([]byte("Trv\x02"), make([]byte, 93)...)
	if got, err := scanAll(t.Context(), data, scan.Spec{}, false); !errors.Is(err, fault.Corrupt) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestRecoverNothing: rows of which nothing is found are reported as lost and not ignored. The file does not count as
// unreadable, because its header states how many rows and which columns are lost.
func TestRecoverNothing(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32},
		{Name: "j", Type: arrow.PrimitiveTypes.Int64}}, nil)
	data := write(t, trevni.Format, sc, nil, flatBatch(t, sc, 16)).Bytes("t")
	starts := startsOf(t, data)
	after := starts[1] + 8 // the header ends with the last start
	cleared, ones := slices.Clone(data), slices.Clone(data)
	clear(cleared[starts[1]:]) // the first column has no block then, and the second begins nowhere
	for i := after; i < int64(len(ones)); i++ {
		ones[i] = 0xff
	}
	for name, c := range map[string]struct {
		data []byte
		lost []string // columns
	}{"zeros": {cleared, []string{"j"}}, "ones": {ones, []string{"i", "j"}},
		"cut": {data[:after], []string{"i", "j"}}} {
		tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f.trv": c.data}), Name: "f.trv"}
		r, found, err := trevni.Format.Recover(t.Context(), tg,
			format.OpenOptions{Limits: format.Limits{}.WithDefaults()})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r.Close()
		if !slices.ContainsFunc(found, func(f region.Finding) bool {
			return f.Code == "trevni.column.rows" && f.Severity == region.Error && f.At.Off == 4 &&
				f.Rows == [2]int64{0, 16} && f.Lost == 16
		}) {
			t.Errorf("%s: reported %+v", name, found)
		}
		var lost []string
		for _, f := range found {
			if f.Code == "trevni.column.damaged" && f.Rows == [2]int64{0, 16} {
				lost = append(lost, f.Column)
			}
		}
		if !slices.Equal(lost, c.lost) {
			t.Errorf("%s: the columns %v are lost, want %v", name, lost, c.lost)
		}
		for _, policy := range []scan.Damaged{scan.SkipRows, scan.NullCells} {
			if got, err := scanAll(t.Context(), c.data, scan.Spec{Damaged: policy}, true); err != nil || got != "" {
				t.Errorf("%s: rows %q, %v", name, got, err)
			}
		}
	}
}

// TestRecoverManyColumns: among very many similar columns, those after a lost one are found, with their original
// values.
func TestRecoverManyColumns(t *testing.T) {
	var fields []arrow.Field
	for i := range 400 {
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("c%d", i), Type: arrow.PrimitiveTypes.Int64})
	}
	sc := arrow.NewSchema(fields, nil)
	data := write(t, trevni.Format, sc, nil, flatBatch(t, sc, 5)).Bytes("t")
	right, err := scanAll(t.Context(), data, scan.Spec{}, false)
	if err != nil {
		t.Fatal(err)
	}
	starts := startsOf(t, data)
	for _, lost := range []int{0, 2} { // number of lost columns at the beginning
		bad := slices.Clone(data)
		clear(bad[starts[0] : starts[len(starts)-1]+8])
		if lost > 0 {
			block, _, _ := blockOf(t, data, lost-1, 0)
			clear(bad[starts[0]:block.Off])
		}
		others := right
		for range lost {
			others = others[strings.IndexByte(others, ']')+1:]
		}
		got, err := scanAll(t.Context(), bad, scan.Spec{Damaged: scan.NullCells}, true)
		if err != nil || !strings.HasSuffix(got, others) || strings.Count(got, "[null,null,null,null,null]") != lost {
			t.Errorf("%d lost: %v, equal %t", lost, err, strings.HasSuffix(got, others))
		}
	}
}

// TestRecoverNearKeys: a key with one changed byte is read as the key that it resembles, and reported: its value, about
// checksums and codecs, is needed to determine where blocks begin.
func TestRecoverNearKeys(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32},
		{Name: "j", Type: arrow.PrimitiveTypes.Int64}}, nil)
	data := write(t, trevni.Format, sc, map[string]string{"codec": "deflate"}, flatBatch(t, sc, 16)).Bytes("t")
	right, err := scanAll(t.Context(), data, scan.Spec{}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"ChecksumAlgorithm", "CompressionCodec"} {
		bad := slices.Clone(data)
		bad[strings.Index(string(data), key)+8] ^= 8
		for _, policy := range []scan.Damaged{scan.SkipRows, scan.NullCells} {
			if got, err := scanAll(t.Context(), bad, scan.Spec{Damaged: policy}, true); got != right || err != nil {
				t.Errorf("%s: %q, %v; want %q", key, got, err, right)
			}
		}
		contradicted(t, key, bad)
	}
}

// TestRecoverRecounts: a block's descriptor states more or fewer rows than can be read from the block. The header and
// the other blocks determine the right number: all rows are returned at their original positions.
func TestRecoverRecounts(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32},
		{Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	ours := write(t, trevni.Format, sc, map[string]string{"block-size": "100"}, flatBatch(t, sc, 99)).Bytes("t")
	for _, c := range []struct {
		data []byte
		at   int64
	}{{corpusFile(t, "v1.12.2/avro_top_int.trv"), 80}, {ours, startsOf(t, ours)[0]}, {ours, startsOf(t, ours)[1]}} {
		right, err := scanAll(t.Context(), c.data, scan.Spec{}, false)
		if err != nil {
			t.Fatal(err)
		}
		if c.at != 80 {
			c.at = int64(binary.LittleEndian.Uint64(c.data[c.at:])) + 4 + 12
		}
		for _, bit := range []byte{1, 4, 8, 32, 128} {
			bad := slices.Clone(c.data)
			bad[c.at] ^= bit
			got, err := scanAll(t.Context(), bad, scan.Spec{Damaged: scan.NullCells}, true)
			if got != right || err != nil {
				t.Errorf("byte %d, bit %d: %q, %v; want %q", c.at, bit, got, err, right)
			}
			if _, reported, _ := recovered(t, bad); !reported {
				t.Errorf("byte %d, bit %d: that is not reported", c.at, bit)
			}
		}
	}
}
