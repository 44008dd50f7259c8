package avro

import (
	"errors"
	"reflect"
	"runtime"
	"testing"

	"stoa/fault"
)

const schema = `{"type":"record","name":"r","fields":[{"name":"i","type":"int","field-id":7},
	{"name":"s","type":["null","string"]},{"name":"d","type":"double"},{"name":"b","type":"bytes"},
	{"name":"f","type":{"type":"fixed","name":"f2","size":2}},{"name":"l","type":{"type":"array","items":"long"}},
	{"name":"o","type":"boolean"}]}`

func values() []any {
	return []any{map[string]any{"i": int64(-3), "s": "x", "d": 1.5, "b": []byte{1, 2}, "f": []byte{3, 4},
		"l": []any{int64(1), int64(1 << 40)}, "o": true},
		map[string]any{"i": int64(0), "s": nil, "d": 0.0, "b": []byte{}, "f": []byte{0, 0}, "l": []any{}, "o": false}}
}

func TestRoundTrip(t *testing.T) {
	b, err := Write(schema, [][2]string{{"k", "v"}}, [16]byte{9}, values())
	if err != nil {
		t.Fatal(err)
	}
	f, err := Read("x.avro", b, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var got []any
	if err := f.Each(func(v any) error { got = append(got, v); return nil }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, values()) || string(f.Meta["k"]) != "v" || f.Schema.Fields[0].ID != 7 {
		t.Errorf("%v", got)
	}
}

// TestDamagedFile: changed and truncated files end with an error or with values; a budget also ends them.
func TestDamagedFile(t *testing.T) {
	b, err := Write(schema, nil, [16]byte{9}, values())
	if err != nil {
		t.Fatal(err)
	}
	read := func(b []byte, most int64) error {
		f, err := Read("x.avro", b, most)
		if err == nil {
			err = f.Each(func(any) error { return nil })
		}
		return err
	}
	for i := range b {
		for bit := range 8 {
			bad := append([]byte{}, b...)
			bad[i] ^= 1 << bit
			_ = read(bad, 1<<20)
		}
		if i > 0 && read(b[:i], 1<<20) == nil && i > 420 {
			t.Errorf("cut at %d of %d: no error", i, len(b))
		}
	}
	if read(b, 100) == nil {
		t.Error("no error though the values take more than 100 bytes")
	}
}

// TestBomb: a block is decompressed only up to the memory that its values may take.
func TestBomb(t *testing.T) {
	b, err := Write(`"bytes"`, nil, [16]byte{9}, []any{make([]byte, 64<<20)})
	if err != nil {
		t.Fatal(err)
	}
	f, err := Read("x.avro", b, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = f.Each(func(any) error { return nil })
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, fault.Limit) || took > 16<<20 {
		t.Errorf("%v after %d bytes of memory, want an error of class Limit after a few MiB", err, took)
	}
}
