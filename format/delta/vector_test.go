package delta

import (
	"context"
	"encoding/hex"
	"slices"
	"testing"

	"stoa/format"
	"stoa/format/delta/internal/log"
)

// TestInlineVector: the example of Delta's protocol, in Spark's own form, and the same rows in the form of
// delta-kernel-rs.
func TestInlineVector(t *testing.T) {
	op := &versionReader{logFiles: &logFiles{}, state: &state{memory: format.Limits{}.Memory()}}
	for _, v := range []log.Vector{
		{Storage: "i", Path: "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", Size: 40, Cardinality: 6},
		{Storage: "i", Path: "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", Size: 44, Cardinality: 6}} {
		got, err := op.vector(context.Background(), &v)
		if want := []int64{3, 4, 7, 11, 18, 29}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
		v.Cardinality = 5
		if got, err := op.vector(context.Background(), &v); err == nil {
			t.Errorf("%v, want an error: it has more rows than it says", got)
		}
	}
}

// TestVectorFile: the file name of the protocol's example.
func TestVectorFile(t *testing.T) {
	id, err := decode85("^-aqEH.-t@S}K{vb[*k^")
	if want := "d2c639aa8816431aaaf6d3fe2512ff61"; err != nil || hex.EncodeToString(id) != want {
		t.Errorf("%x, %v, want %s", id, err, want)
	}
}
