package meta

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	flatbuffers "github.com/google/flatbuffers/go"

	"stoa/fault"
	"stoa/format/cfile"
)

// cellOf makes a cell as array1d.fbs has it, by Google's builder. perByte is how validity was written at first.
func cellOf(t cfile.Type, kind byte, values [][]byte, perByte bool) []byte {
	b := flatbuffers.NewBuilder(64)
	offsets := make([]flatbuffers.UOffsetT, len(values))
	table := func(vector flatbuffers.UOffsetT) flatbuffers.UOffsetT {
		b.StartObject(1)
		b.PrependUOffsetTSlot(0, vector, 0)
		return b.EndObject()
	}
	for i, v := range values {
		switch t {
		case cfile.String, cfile.Varchar:
			offsets[i] = b.CreateByteString(v)
		case cfile.Binary:
			offsets[i] = table(b.CreateByteVector(v))
		}
	}
	width, nulls := StoredWidth(t), false
	size := max(width, 4*int(1-min(width, 1)))
	b.StartVector(size, len(values), size)
	for i := len(values) - 1; i >= 0; i-- {
		nulls = nulls || values[i] == nil
		if width == 0 {
			b.PrependUOffsetT(offsets[i])
			continue
		}
		for k := width - 1; k >= 0; k-- {
			var x byte
			if values[i] != nil {
				x = values[i][k]
			}
			b.PlaceByte(x)
		}
	}
	data := table(b.EndVector(len(values)))
	var validity flatbuffers.UOffsetT
	if nulls {
		bits := make([]byte, (len(values)+7)/8)
		bytes := make([]byte, len(values))
		for i, v := range values {
			if v != nil {
				bits[i/8] |= 1 << (i % 8)
				bytes[i] = 1
			}
		}
		if perByte {
			bits = bytes
		}
		validity = b.CreateByteVector(bits)
	}
	b.StartObject(3)
	b.PrependByteSlot(0, kind, 0)
	b.PrependUOffsetTSlot(1, data, 0)
	b.PrependUOffsetTSlot(2, validity, 0)
	b.Finish(b.EndObject())
	return b.FinishedBytes()
}

// TestArrayCells: cells by Google's FlatBuffers, with numbers of the types of the union as in array1d.fbs, come back
// element for element. Cut or changed ones are an error or other elements, and no panic.
func TestArrayCells(t *testing.T) {
	kinds := map[cfile.Type]byte{cfile.Int8: 1, cfile.Uint8: 2, cfile.Bool: 2, cfile.Int16: 3, cfile.Uint16: 4,
		cfile.Int32: 5, cfile.Date: 5, cfile.Decimal32: 5, cfile.Uint32: 6, cfile.Int64: 7, cfile.UnixtimeMicros: 7,
		cfile.Decimal64: 7, cfile.Uint64: 8, cfile.Float: 9, cfile.Double: 10, cfile.String: 11, cfile.Varchar: 11,
		cfile.Binary: 12}
	r := rand.New(rand.NewPCG(3, 3))
	for typ, kind := range kinds {
		c := &Column{Name: "a", Type: typ, Array: true, Nullable: true, Precision: 5}
		for n := range 40 {
			var values [][]byte
			for range n {
				v := make([]byte, StoredWidth(typ))
				if len(v) == 0 {
					v = make([]byte, r.IntN(20))
				}
				for k := range v {
					v[k] = byte(r.Uint32())
				}
				if r.IntN(4) == 0 && n%3 > 0 {
					v = nil
				}
				values = append(values, v)
			}
			for _, perByte := range []bool{false, true} {
				cell := cellOf(typ, kind, values, perByte)
				got, err := c.elements(cell)
				if want := fmt.Sprintf("%x", values); err != nil || fmt.Sprintf("%x", got) != want {
					t.Fatalf("%s: got %x, %v, want %s", typ, got, err, want)
				}
				for i := range got {
					if (got[i] == nil) != (values[i] == nil) {
						t.Fatalf("%s: element %d of %x is null, or not", typ, i, values)
					}
				}
				for range 60 {
					x := append([]byte{}, cell[:len(cell)-r.IntN(2)*r.IntN(len(cell))]...)
					for range r.IntN(3) {
						if len(x) > 4 {
							binary.LittleEndian.PutUint32(x[r.IntN(len(x)-4):], r.Uint32()>>r.IntN(32))
						}
					}
					if _, err := c.elements(x); err != nil && !errors.Is(err, fault.Corrupt) {
						t.Fatal(err)
					}
				}
			}
		}
	}
	v, err := (&Column{Name: "a", Type: cfile.Int16, Array: true, Nullable: true}).Vector([][]byte{{}, nil,
		cellOf(cfile.Int16, 3, [][]byte{{1, 0}, nil, {3, 0}}, false)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := v.Emit(3)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Release()
	if got, want := fmt.Sprint(a), "[[] (null) [1 (null) 3]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if _, err := (&Column{Name: "a", Type: cfile.Int32, Array: true}).Vector([][]byte{cellOf(cfile.Int16, 3,
		[][]byte{{1, 0}}, false)}); err == nil {
		t.Error("elements of another type are read")
	}
}
