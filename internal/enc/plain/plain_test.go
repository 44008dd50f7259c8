package plain

import (
	"bytes"
	"slices"
	"testing"
)

func TestExpandByHand(t *testing.T) {
	// rows 0..5 at bit 3: absent, present, present, absent, present, absent
	valid := []byte{0b10110_000 & 0xff, 0}
	data := []byte{7, 8, 9, 1, 2, 3}
	ExpandFixed(data, 1, 6, valid, 3)
	if !bytes.Equal(data, []byte{0, 7, 8, 0, 9, 0}) {
		t.Errorf("ExpandFixed: %v", data)
	}
	offs := []int32{10, 12, 15, 20, -1, -1, -1}
	ExpandOffsets(offs, 6, valid, 3)
	if !slices.Equal(offs, []int32{10, 10, 12, 15, 15, 20, 20}) {
		t.Errorf("ExpandOffsets: %v", offs)
	}
}

func TestGatherByHand(t *testing.T) {
	dictOffs, dictData := []int32{12, 15, 15, 17}, []byte("............foogo")
	codes := []uint32{2, 0, 1, 2}
	n, err := SizeStrings(codes, dictOffs)
	if n != 7 || err != nil {
		t.Fatalf("SizeStrings = %d, %v", n, err)
	}
	offs, data := []int32{1, 0, 0, 0, 0}, make([]byte, 8)
	if err := GatherStrings(offs, data, codes, dictOffs, dictData); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(offs, []int32{1, 3, 6, 6, 8}) || string(data[1:]) != "gofoogo" {
		t.Errorf("%v %q", offs, data)
	}
	if _, err := SizeStrings([]uint32{0, 3}, dictOffs); err == nil {
		t.Error("SizeStrings takes code 3 of 3 entries")
	}
	if err := GatherStrings(offs[:3], data, []uint32{0, 1<<32 - 1}, dictOffs, dictData); err == nil {
		t.Error("GatherStrings takes code 2^32-1 of 3 entries")
	}
}
