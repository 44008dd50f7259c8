package prefix

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// By hand: "apple", "apply", "b", "", "b" with a restart point every 3 entries.
func TestByHand(t *testing.T) {
	const want = "0005" + "6170706c65" + "0401" + "79" + "0001" + "62" + "0000" + "0001" + "62"
	vals := []string{"apple", "apply", "b", "", "b"}
	src, _ := hex.DecodeString(want)
	e := NewEncoder(3)
	for _, v := range vals {
		e.Put([]byte(v))
	}
	if !bytes.Equal(e.Bytes(), src) || e.Len() != len(src) || e.Count != 5 {
		t.Errorf("encoded as %x, want %s", e.Bytes(), want)
	}
	if r := e.Restarts(); len(r) != 1 || r[0] != 13 {
		t.Errorf("restarts %d, want [13]", r)
	}
	total, used, err := Size(src, 5)
	if total != 12 || used != len(src) || err != nil {
		t.Fatalf("Size = %d, %d, %v", total, used, err)
	}
	offs, data := make([]int32, 6), make([]byte, 3+12+Slack)
	offs[0] = 3
	if used, err := Decode(offs, data, src, 5); used != len(src) || err != nil {
		t.Fatalf("Decode = %d, %v", used, err)
	}
	for i, v := range vals {
		if got := string(data[offs[i]:offs[i+1]]); got != v {
			t.Errorf("string %d: %q, want %q", i, got, v)
		}
	}
}
