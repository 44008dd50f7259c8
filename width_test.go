package stoa

import (
	"bytes"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/region"
	"stoa/store"
)

// TestZeroWidth: fixed-size binary values of zero bytes, at the top level, in structs and in lists, are written and
// pass the check of the output, or are refused as unsupported.
func TestZeroWidth(t *testing.T) {
	none := &arrow.FixedSizeBinaryType{ByteWidth: 0}
	bits := memory.NewBufferBytes([]byte{5})
	data := array.NewData(none, 3, []*memory.Buffer{bits, memory.NewBufferBytes(nil)}, nil, 1, 0)
	shapes := around(array.MakeFromData(data))
	shapes["top"] = array.MakeFromData(data)
	for _, f := range Formats {
		if f.Create == nil {
			continue
		}
		for shape, a := range shapes {
			name := "t" + f.Extensions[0]
			mem := store.NewMemory(nil)
			sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: a.DataType(), Nullable: true}}, nil)
			w, err := Create(t.Context(), name, sc, CreateOptions{To: f.Name, Sink: mem.Sink(name)})
			if err == nil {
				if err = w.Write(t.Context(), array.NewRecordBatch(sc, []arrow.Array{a}, int64(a.Len()))); err != nil {
					w.Abort(t.Context())
				} else {
					_, err = w.Close(t.Context())
				}
			}
			if err != nil && (!errors.Is(err, fault.Unsupported) || errors.Is(err, fault.Bug)) {
				t.Errorf("%s, %s: got %v, want class Unsupported", f.Name, shape, err)
			}
		}
	}
}

// TestZeroWidthIsNotDamage: a file with such values by another writer is unsupported, not damaged.
func TestZeroWidthIsNotDamage(t *testing.T) {
	none := &arrow.FixedSizeBinaryType{ByteWidth: 0}
	sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: none, Nullable: true}}, nil)
	data := array.NewData(none, 3, []*memory.Buffer{nil, memory.NewBufferBytes(nil)}, nil, 0, 0)
	var b bytes.Buffer
	w := ipc.NewWriter(&b, ipc.WithSchema(sc))
	batch := array.NewRecordBatch(sc, []arrow.Array{array.MakeFromData(data)}, 3)
	if err := errors.Join(w.Write(batch), w.Close()); err != nil {
		t.Fatal(err)
	}
	tree := store.NewMemory(map[string][]byte{"t.arrows": b.Bytes()})
	if _, err := Open(t.Context(), "t.arrows", OpenOptions{Tree: tree}); !errors.Is(err, fault.Unsupported) {
		t.Errorf("open: got %v, want class Unsupported", err)
	}
	for f, err := range Verify(t.Context(), "t.arrows", OpenOptions{Tree: tree}) {
		if err == nil && f.Severity == region.Error && f.Code != "arrow.unreadable" { // which is not damage
			t.Errorf("got %s: %s, want no damage", f.Code, f.Message)
		}
	}
}
