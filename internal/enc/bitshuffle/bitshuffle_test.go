package bitshuffle

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// By hand from the layout.
func TestLayout(t *testing.T) {
	for _, c := range []struct {
		elem        int
		elems, rows string
	}{
		{1, "0100000000000080", "0100000000000080"},
		{1, "0303030300000000", "0f0f000000000000"},
		{1, "00000000000000ff", "8080808080808080"},
		{2, "01000000000000000000000000000080", "01000000000000000000000000000080"},
		{2, "ff000000000000000000000000000000", "01010101010101010000000000000000"},
		{2, "0000000000ff00000000000000000000", "00000000000000000404040404040404"},
	} {
		elems, _ := hex.DecodeString(c.elems)
		rows, _ := hex.DecodeString(c.rows)
		got := make([]byte, len(elems))
		Untranspose(got, rows, c.elem)
		if !bytes.Equal(got, elems) {
			t.Errorf("Untranspose(%s, %d) = %x, want %s", c.rows, c.elem, got, c.elems)
		}
		Transpose(got, elems, c.elem)
		if !bytes.Equal(got, rows) {
			t.Errorf("Transpose(%s, %d) = %x, want %s", c.elems, c.elem, got, c.rows)
		}
	}
}
