package trevni_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/trevni"
	"stoa/internal/effort"
	"stoa/internal/scan"
)

// TestMovedBytes: if bytes are inserted into a file without checksums, or removed from it, at any place, reading
// returns no value that was not there, and verify has an error. Zeros at the end are padding.
func TestMovedBytes(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "b", Type: arrow.BinaryTypes.String}, {Name: "c", Type: arrow.PrimitiveTypes.Int32},
		{Name: "d", Type: arrow.PrimitiveTypes.Float64}}, nil)
	for name, f := range map[string]format.Format{"wiki": trevni.Format, "avro": trevni.AvroFormat} {
		data := write(t, f, sc, map[string]string{"checksum": "null", "codec": "null", "block-size": "200"},
			flatBatch(t, sc, 60)).Bytes("t")
		right, err := scanAll(t.Context(), data, scan.Spec{}, false)
		if err != nil || errorsOf(t, data) > 0 {
			t.Fatal(name, err)
		}
		reported := 0
		for at := range data {
			for _, n := range []int{-9, -8, -1, 1, 4, 8} {
				bad := movedBytes(data, at, n)
				if bad == nil || len(bytes.Trim(bad[min(len(bad), len(data)):], "\x00")) == 0 && n > 0 ||
					(at+n)%effort.Step(2, 5) != 0 {
					continue
				}
				got, err := scanAll(t.Context(), bad, scan.Spec{}, false)
				if err == nil && got != right {
					t.Errorf("%s: %d bytes at %d: other values and no error", name, n, at)
				}
				if err != nil {
					if reported++; errorsOf(t, bad) == 0 {
						t.Errorf("%s: %d bytes at %d: verify has no error, reading has: %v", name, n, at, err)
					}
				}
			}
		}
		if reported < len(data)/2 {
			t.Errorf("%s: only %d of the changes of %d bytes were reported", name, reported, len(data))
		}
	}
}

// movedBytes repeats n bytes of the file at an offset, or removes -n; nil if there are not enough.
func movedBytes(data []byte, at, n int) []byte {
	switch {
	case n > 0 && at+n <= len(data):
		return slices.Insert(bytes.Clone(data), at, data[at:at+n]...)
	case n < 0 && at-n <= len(data):
		return slices.Delete(bytes.Clone(data), at, at-n)
	}
	return nil
}
