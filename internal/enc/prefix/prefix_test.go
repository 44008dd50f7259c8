package prefix

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"stoa/fault"
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

// Damaged entries by hand, and their errors.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		hex  string
		n    int
		want string
	}{
		{"", 1, "[0+1]: corrupt: entry[0].shared: the input ends"},
		{"00", 1, "[1+1]: corrupt: entry[0].unshared: the input ends"},
		{"0005616263", 1, "[0+2]: corrupt: entry[0].unshared: 5 bytes, 3 are left"},
		{"0100", 1, "[0+2]: corrupt: entry[0].shared: 1 bytes of a string of 0"},
		{"0001620201" + "63", 2, "[3+2]: corrupt: entry[1].shared: 2 bytes of a string of 1"},
		{"ffffffff1f00", 1, "[0+5]: corrupt: entry[0].shared: a varint of more than 32 bits"},
		{"808080808000", 1, "[0+5]: corrupt: entry[0].shared: a varint of more than 32 bits"},
		{"00ffffffff0f", 1, "[0+6]: corrupt: entry[0].unshared: 4294967295 bytes, 0 are left"},
	} {
		src, _ := hex.DecodeString(c.hex)
		_, _, err := Size(src, c.n)
		if err == nil || err.Error() != c.want {
			t.Errorf("Size(%s): %v, want %s", c.hex, err, c.want)
		}
		_, err = Decode(make([]int32, c.n+1), make([]byte, 100), src, c.n)
		if err == nil || err.Error() != c.want {
			t.Errorf("Decode(%s): %v, want %s", c.hex, err, c.want)
		}
	}
}

// naiveDecode follows the description of the format, entry by entry. ok is false after damage.
func naiveDecode(src []byte, n int) (out [][]byte, used int, ok bool) {
	at := 0
	var prev []byte
	for range n {
		var l [2]uint64
		for i := range l {
			v, k := binary.Uvarint(src[at:min(len(src), at+5)])
			if k <= 0 || v > math.MaxUint32 {
				return nil, 0, false
			}
			l[i] = v
			at += k
		}
		if l[0] > uint64(len(prev)) || l[1] > uint64(len(src)-at) {
			return nil, 0, false
		}
		prev = append(bytes.Clone(prev[:l[0]]), src[at:at+int(l[1])]...)
		at += int(l[1])
		out = append(out, prev)
	}
	return out, at, true
}

func check(t interface {
	Helper()
	Fatalf(string, ...any)
}, src []byte, n, start, slack int) {
	t.Helper()
	want, wantUsed, ok := naiveDecode(src, n)
	total, used, err := Size(src, n)
	if (err == nil) != ok || ok && used != wantUsed {
		t.Fatalf("Size = %d, %d, %v; twin %d, %v", total, used, err, wantUsed, ok)
	}
	room := 4096
	if ok {
		if total > 1<<20 {
			return
		}
		room = int(total)
	}
	offs, data := make([]int32, n+1), make([]byte, start+room+slack)
	offs[0] = int32(start)
	used, err = Decode(offs, data, src, n)
	var e *fault.Error
	if err != nil && (!errors.As(err, &e) || e.Reason == "") {
		t.Fatalf("%T %v", err, err)
	}
	if !ok {
		if err == nil {
			t.Fatalf("Decode reports no error, the twin fails")
		}
		return
	}
	if err != nil || used != wantUsed {
		t.Fatalf("Decode = %d, %v; twin %d", used, err, wantUsed)
	}
	for i, w := range want {
		if got := data[offs[i]:offs[i+1]]; !bytes.Equal(got, w) {
			t.Fatalf("string %d: %q, want %q", i, got, w)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"", "a", "ab", "abc", strings.Repeat("x", 31), strings.Repeat("y", 33),
			strings.Repeat("z", 200)})
		vals := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(part, 0, 4).Draw(t, "parts"), "")
		}), 0, 60).Draw(t, "vals")
		restart := rapid.IntRange(1, 20).Draw(t, "restart")
		e := NewEncoder(restart)
		e.Put([]byte("before Reset"))
		e.Reset()
		for _, v := range vals {
			e.Put([]byte(v))
		}
		if e.Count != len(vals) || len(e.Restarts()) != max(0, (len(vals)-1)/restart) {
			t.Fatalf("%d values, %d restarts", e.Count, len(e.Restarts()))
		}
		for _, r := range e.Restarts() {
			if e.Bytes()[r] != 0 {
				t.Fatalf("a restart point that shares %d bytes", e.Bytes()[r])
			}
		}
		got, used, ok := naiveDecode(e.Bytes(), len(vals))
		if !ok || used != e.Len() {
			t.Fatalf("the twin used %d of %d, %v", used, e.Len(), ok)
		}
		for i, v := range vals {
			if string(got[i]) != v {
				t.Fatalf("value %d: the twin reads %q, want %q", i, got[i], v)
			}
		}
		check(t, e.Bytes(), len(vals), rapid.IntRange(0, 40).Draw(t, "start"), rapid.IntRange(0, 40).Draw(t, "slack"))
	})
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x00\x05apple\x04\x01y\x00\x01b\x00\x00\x00\x01b"), uint8(5), uint8(0))
	f.Add([]byte("\x00\x01a\x01\x01b\x02\x01c\x03\x00\x03\x00"), uint8(5), uint8(33))
	f.Add([]byte("\x00\xff\xff\xff\xff\x0f"), uint8(1), uint8(0))
	f.Fuzz(func(t *testing.T, src []byte, n, slack uint8) { check(t, src, int(n), 3, int(slack)) })
}

func BenchmarkDecode(b *testing.B) {
	for _, kind := range []string{"keys", "urls"} {
		r := rand.New(rand.NewPCG(7, 8))
		e, v := NewEncoder(16), 0
		const n = 4096
		for range n {
			v += r.IntN(50)
			if kind == "keys" {
				e.Put(fmt.Appendf(nil, "user%010d", v))
			} else {
				e.Put(fmt.Appendf(nil, "https://example.org/some/path/of/a/site/%d/page-%d.html", v/100, v))
			}
		}
		total, _, _ := Size(e.Bytes(), n)
		offs, data := make([]int32, n+1), make([]byte, int(total)+Slack)
		b.Run(kind, func(b *testing.B) {
			b.SetBytes(total)
			for b.Loop() {
				if _, err := Decode(offs, data, e.Bytes(), n); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(kind+"/size", func(b *testing.B) {
			b.SetBytes(total)
			for b.Loop() {
				Size(e.Bytes(), n)
			}
		})
	}
}
