package redfile_test

import (
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile"
	"stoa/store"
)

// TestOpeningIsBounded: a single byte of metadata may be a whole structure. Opening and recovering take a bounded
// amount of memory, and files that need more are refused with an error of class Limit.
func TestOpeningIsBounded(t *testing.T) {
	const n = 20_000_000
	list := func(field byte, elem byte) []byte { // a field of the compact protocol: a list of n structs without fields
		return append(binary.AppendUvarint([]byte{field<<4 | 9, 0xf0 | elem}, n), make([]byte, n)...)
	}
	// version, rows, columns, a row group
	chunks := slices.Concat([]byte{0x15, 2, 0x16, 0, 0x15, 0, 0x19, 0x1c}, list(1, 12), []byte{0, 0})
	schema := slices.Concat([]byte{0x15, 2}, list(1, 12), []byte{0x16, 0, 0})
	for name, meta := range map[string][]byte{"column chunks": chunks, "elements": schema} {
		data := slices.Concat([]byte("RED1"), meta, binary.LittleEndian.AppendUint32(nil, uint32(len(meta))),
			[]byte("RED1"))
		tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f.red": data}), Name: "f.red"}
		for verb, run := range map[string]func() error{
			"open": func() error {
				r, err := redfile.Format.Open(t.Context(), tg, format.OpenOptions{})
				if err == nil {
					r.Close()
				}
				return err
			},
			"recover": func() error {
				r, _, err := redfile.Format.Recover(t.Context(), tg, format.OpenOptions{})
				if err == nil {
					r.Close()
				}
				return err
			},
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := run()
			runtime.ReadMemStats(&after)
			if !errors.Is(err, fault.Limit) {
				t.Errorf("%s, %s: %v", name, verb, err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 4<<30 {
				t.Errorf("%s, %s: %d bytes were allocated", name, verb, took)
			}
		}
	}
}
