package trevni_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
)

// impalaFile builds a file as Impala's writer of 2012 did: one column, definition levels after the values,
// stored sizes of 0 without a codec, no checksums. Rows i with i%3 == 1 are null. It is built by hand, from the
// layout in Impala's sources, because no program writes it any more.
func impalaFile(typ, codec string, rows int, value func(i int) []byte) []byte {
	le := binary.LittleEndian
	text := func(b []byte, s string) []byte { return append(append(b, byte(2*len(s))), s...) }
	b := append([]byte("Trv"), 1)
	b = le.AppendUint64(b, uint64(rows))
	b = le.AppendUint32(b, 1)
	b = text(text(append(b, 2), "trevni.codec"), codec)
	b = append(b, 2*3)
	b = text(text(b, "trevni.name"), "c")
	b = text(text(b, "trevni.type"), typ)
	b = text(text(b, "trevni.definition"), "1")
	b = le.AppendUint64(b, uint64(len(b)+8))
	b = le.AppendUint32(b, 1) // blocks
	var raw []byte
	levels := make([]byte, (rows+7)/8)
	for i := range rows {
		if i%3 != 1 {
			raw = append(raw, value(i)...)
			levels[i/8] |= 1 << (i % 8)
		}
	}
	raw = append(raw, levels...)
	stored, size := raw, 0
	if codec == "gzip" {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		w.Write(raw)
		w.Close()
		stored, size = z.Bytes(), z.Len()
	}
	for _, n := range []int{rows, len(raw), size} {
		b = le.AppendUint32(b, uint32(n))
	}
	return append(b, stored...)
}

// TestImpalaRareTypes: the types that only Impala had, and gzip.
func TestImpalaRareTypes(t *testing.T) {
	le := binary.LittleEndian
	for _, c := range []struct {
		typ   string
		arrow arrow.Type
		value func(i int) []byte
		text  func(i int) string
	}{
		{"fixed8", arrow.INT8, func(i int) []byte { return []byte{byte(i - 50)} },
			func(i int) string { return fmt.Sprint(i - 50) }},
		{"fixed16", arrow.INT16, func(i int) []byte { return le.AppendUint16(nil, uint16(300*i-9000)) },
			func(i int) string { return fmt.Sprint(300*i - 9000) }},
		{"timestamp", arrow.FIXED_SIZE_BINARY,
			func(i int) []byte { return le.AppendUint32(le.AppendUint64(nil, uint64(i)*1e9), 2456000+uint32(i)) },
			func(i int) string {
				return string(le.AppendUint32(le.AppendUint64(nil, uint64(i)*1e9), 2456000+uint32(i)))
			}},
		{"int", arrow.INT32, func(i int) []byte { return binary.AppendVarint(nil, int64(i*i-77)) },
			func(i int) string { return fmt.Sprint(i*i - 77) }},
	} {
		for _, codec := range []string{"none", "gzip"} {
			const rows = 90
			data := impalaFile(c.typ, codec, rows, c.value)
			r, cols, err := readAll(t.Context(), data, format.OpenOptions{})
			if err != nil {
				t.Fatal(c.typ, codec, err)
			}
			if got := r.Schema().Field(0).Type.ID(); got != c.arrow || cols[0].Len() != rows ||
				r.Meta()[0].Value != "Trevni, dialect impala, version 1" {
				t.Fatalf("%s: %s, %d rows, %s", c.typ, got, cols[0].Len(), r.Meta()[0].Value)
			}
			for i := range rows {
				got := "null"
				if cols[0].IsValid(i) {
					if got = cols[0].ValueStr(i); c.typ == "timestamp" {
						got = string(cols[0].(interface{ Value(int) []byte }).Value(i))
					}
				}
				if want := map[bool]string{true: "null"}[i%3 == 1]; want == "" && got != c.text(i) || want != "" &&
					got != want {
					t.Fatalf("%s %s row %d: %q", c.typ, codec, i, got)
				}
			}
			if codes, all := findings(t, data); len(codes) > 0 {
				t.Errorf("%s %s: %v", c.typ, codec, all)
			}
			data[len(data)-1-rows/8] ^= 0x40 // gzip has its own checksum
			if _, _, err := readAll(t.Context(), data, format.OpenOptions{}); codec == "gzip" && err == nil {
				t.Errorf("%s: a changed byte is not noticed", c.typ)
			}
		}
	}
}
