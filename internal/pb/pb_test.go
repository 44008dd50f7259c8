package pb_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/internal/pb"
	"stoa/region"
	"stoa/wire"
)

// The examples of the Protocol Buffers encoding document: field 1 = 150; field 2 = "testing"; field 3 = message{1:
// 150}.
func TestExamplesOfTheDocument(t *testing.T) {
	for _, x := range []struct {
		want string
		got  []byte
	}{
		{"\x08\x96\x01", pb.AppendUint(nil, 1, 150)},
		{"\x12\x07testing", pb.AppendString(nil, 2, "testing")},
		{"\x1a\x03\x08\x96\x01", pb.AppendMessage(nil, 3, pb.AppendUint(nil, 1, 150))},
		{"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", pb.AppendInt(nil, 1, -2)},
		{"\x0d\x01\x00\x00\x00", pb.AppendFixed32(nil, 1, 1)},
		{"\x09\x01\x00\x00\x00\x00\x00\x00\x00", pb.AppendFixed64(nil, 1, 1)},
		{"\x08\x01", pb.AppendBool(nil, 1, true)},
	} {
		if string(x.got) != x.want {
			t.Errorf("got %q, want %q", x.got, x.want)
		}
	}
}

func TestRead(t *testing.T) {
	in := []byte("\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01\x20\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x78\x05")
	var nodes []string
	var covered int64
	c := wire.NewCursor(in, fault.Span{Object: "f", Off: 100, Len: int64(len(in))}, "m").Trace(func(n region.Node) {
		nodes = append(nodes, strings.Repeat(" ", n.Depth)+n.Name+"="+n.Value)
		if n.Kind != region.Struct {
			covered += n.At.Len
		}
	}, 0)
	var a, inner uint64
	var b []byte
	var d int32
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			a = r.Uint("a")
		case 2:
			b = r.Bytes("b")
		case 3:
			s := r.Message("c")
			for r := pb.NewReader(s); r.Next(); {
				inner = r.Uint("x")
			}
			if s.Err() != nil {
				t.Fatal(s.Err())
			}
		case 4:
			d = r.Int32("d")
		default:
			r.Unknown()
		}
	}
	if c.Err() != nil || a != 150 || inner != 150 || d != -2 || !bytes.Equal(b, []byte("testing")) {
		t.Fatal(a, inner, d, b, c.Err())
	}
	want := `a=150|b="testing"|c=| tag=| x=150|d=-2|field 15=not known`
	if got := strings.Join(nodes, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if covered != int64(len(in)) {
		t.Errorf("%d of %d bytes have an owner", covered, len(in))
	}
}

func TestBroken(t *testing.T) {
	for _, in := range []string{"\x00", "\x08", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x09abc",
		"\x0dabc", "\x12\x04abc", "\x0b\x00", "\x12\xff"} {
		c := wire.NewCursor([]byte(in), fault.Span{Object: "f", Len: int64(len(in))}, "m")
		for r := pb.NewReader(c); r.Next(); {
			r.Unknown()
		}
		if !errors.Is(c.Err(), fault.Corrupt) {
			t.Errorf("%q: %v", in, c.Err())
		}
	}
	c := wire.NewCursor([]byte("\x08\x01"), fault.Span{Object: "f", Len: 2}, "m")
	for r := pb.NewReader(c); r.Next(); {
		r.Bytes("name")
	}
	if !errors.Is(c.Err(), fault.Corrupt) || !strings.Contains(c.Err().Error(), "m.name") {
		t.Error(c.Err())
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01"))
	f.Fuzz(func(t *testing.T, in []byte) {
		c := wire.NewCursor(in, fault.Span{Object: "f", Len: int64(len(in))}, "m")
		for r := pb.NewReader(c); r.Next(); {
			switch r.Field() % 4 {
			case 0:
				r.Unknown()
			case 1:
				r.Uint32("u")
			case 2:
				r.Bytes("b")
			case 3:
				r.Message("m")
			}
		}
		if c.Err() == nil && c.Left() != 0 {
			t.Fatal("bytes are left over without an error")
		}
	})
}
