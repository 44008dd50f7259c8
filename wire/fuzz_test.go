package wire

import (
	"errors"
	"testing"

	"stoa/fault"
	"stoa/region"
)

// FuzzCursor reads bytes with an arbitrary sequence of reads: each byte of ops is one read, with its arguments in the
// upper bits. Every reported field lies in the cursor's bytes and after the previous one; after an error every read
// returns zero and nothing moves.
func FuzzCursor(f *testing.F) {
	f.Add([]byte("\x01\x02\x03\x04\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x05hello"),
		[]byte{0, 1, 2, 3, 4, 5, 6, 0x17, 0x28, 0x39}, true)
	f.Add([]byte("\x05hello"), []byte{6, 0x57}, false)
	f.Fuzz(func(t *testing.T, data, ops []byte, exact bool) {
		const base = 100
		at := fault.Span{Object: "f", Off: base, Len: int64(len(data))}
		c := NewInnerCursor(data, at, "x")
		if exact {
			c = NewCursor(data, at, "x")
		}
		end := int64(0)
		c.Trace(func(n region.Node) {
			from, to := n.At.Off-base, n.At.End()-base
			if !exact {
				from, to = n.Inner, n.Inner
			}
			if from < end || to > int64(len(data)) || n.At.Off < base {
				t.Fatalf("%+v behind %d", n, end)
			}
			end = to
		}, 0)
		for _, op := range ops {
			pos, failed := c.Pos(), c.Err()
			zero := read(t, c, op&0xf, int(op>>4))
			if failed != nil && (!zero || c.Pos() != pos || c.Err() != failed) {
				t.Fatalf("after %v: at %d of %d, zero %t, %v", failed, c.Pos(), pos, zero, c.Err())
			}
			if c.Pos() < pos || c.Left() < 0 || c.Pos()+c.Left() != len(data) || len(c.Rest()) != c.Left() {
				t.Fatalf("at %d, %d are left of %d", c.Pos(), c.Left(), len(data))
			}
		}
		var e *fault.Error
		if err := c.Err(); err != nil &&
			(!errors.As(err, &e) || e.Class != fault.Corrupt || e.At.Object != "f" || e.At.Off < base ||
				e.At.End() > at.End()) {
			t.Fatal(err)
		}
	})
}

// read performs one read; zero reports that it returned nothing.
func read(t *testing.T, c *Cursor, op byte, n int) (zero bool) {
	switch op {
	case 0:
		return c.U8("u8") == 0
	case 1:
		return c.U32("u32") == 0
	case 2:
		return c.U32BE("u32be") == 0
	case 3:
		return c.U64("u64") == 0
	case 4:
		return c.Uvarint("uvarint") == 0
	case 5:
		return c.Uvarint32("uvarint32") == 0
	case 6:
		n := c.Length("length")
		if n < 0 || n > c.Left() {
			t.Fatalf("a length of %d, %d are left", n, c.Left())
		}
		return n == 0
	case 7:
		return len(c.Bytes("bytes", n)) == 0
	case 8:
		c.Skip("skip", n-1) // also -1
		return true
	}
	s := c.Section("section", n)
	zero = s.U8("inner") == 0
	s.Uvarint("inner2")
	c.Join(s)
	return zero
}
