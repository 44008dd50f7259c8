package wire_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"stoa/fault"
	"stoa/region"
	"stoa/wire"
)

var at = fault.Span{Object: "f", Off: 1000, Len: 24}

var bytes24 = []byte{1, 2, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0xac, 0x02, 2, 'h', 'i', 0xff, 0xff}

func TestFieldsAreReadAndReported(t *testing.T) {
	var got []string
	c := wire.NewCursor(bytes24, at, "head").Trace(func(n region.Node) {
		got = append(got, fmt.Sprintf("%d %s=%s %s", n.Depth, n.Name, n.Value, n.At))
	}, 2)
	a, b, be, u := c.U8("a"), c.U32("b"), c.U32BE("be"), c.U64("u")
	v := c.Uvarint("v")
	s := c.Bytes("s", c.Length("len"))
	if a != 1 || b != 2 || be != 3 || u != 4 || v != 300 || string(s) != "hi" || c.Left() != 2 || c.Err() != nil {
		t.Fatalf("%d %d %d %d %d %q, %d left, %v", a, b, be, u, v, s, c.Left(), c.Err())
	}
	want := []string{"2 a=1 f[1000+1]", "2 b=2 f[1001+4]", "2 be=3 f[1005+4]", "2 u=4 f[1009+8]",
		"2 v=300 f[1017+2]", "2 len=2 f[1019+1]", "2 s= f[1020+2]"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestTheFirstErrorStays(t *testing.T) {
	c := wire.NewCursor(bytes24, at, "head")
	c.Skip("all but two", 22)
	if c.U32("count") != 0 {
		t.Error("a value came out of nothing")
	}
	c.U8("next")
	want := "f[1022+2]: corrupt: head.count: 4 bytes are needed, 2 are left"
	if err := c.Err(); !errors.Is(err, fault.Corrupt) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestBadVarintsAndLengths(t *testing.T) {
	for name, b := range map[string][]byte{
		"v: not a varint of at most 64 bits":  {0xff},
		"v: not a varint of at most 64 bits ": {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"v: 5 bytes are declared, 1 are left": {5, 0},
		"v: 4294967296 does not fit 32 bits":  {0x80, 0x80, 0x80, 0x80, 0x10},
	} {
		c := wire.NewCursor(b, fault.Span{Object: "f", Len: int64(len(b))}, "")
		if name[3] == '4' {
			c.Uvarint32("v")
		} else {
			c.Length("v")
		}
		var e *fault.Error
		if !errors.As(c.Err(), &e) || e.Path+": "+e.Reason != trim(name) || e.At.End() > int64(len(b)) {
			t.Errorf("% x: %v, want %s", b, c.Err(), name)
		}
	}
}

func trim(s string) string {
	if s[len(s)-1] == ' ' {
		return s[:len(s)-1]
	}
	return s
}

func TestDecodedBytesNameTheWholeBlock(t *testing.T) {
	c := wire.NewInnerCursor(bytes24, at, "block[1]")
	s := c.Section("part", 8)
	c.Skip("x", 3)
	in := c.Section("inner", 2)
	in.U32("n")
	want := "f[1000+24]: corrupt: block[1].inner.n: 4 bytes are needed, 2 are left (byte 11 of the decoded block)"
	if in.Err() == nil || in.Err().Error() != want {
		t.Errorf("%v, want %s", in.Err(), want)
	}
	if s.Left() != 8 || c.Pos() != 13 || c.Err() != nil {
		t.Errorf("%d left, at %d, %v", s.Left(), c.Pos(), c.Err())
	}
}
