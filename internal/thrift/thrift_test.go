package thrift_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/wire"
)

// The same struct as written by Apache Thrift's Python library (0.25.0).
var written = map[thrift.Protocol]string{
	thrift.Compact: "" +
		"111213f914dfd40315ffffffff0f16feffffffffffffffff01179a9999999999b9bf08500773746f6120cf8319350201d80419f6" +
		"1413110f0d0b090705030100020406080a0c0e10121a310102011b028c01611802616100016218026262001b0019291800081c01" +
		"d8040005030a00",
	thrift.Binary: "" +
		"0200010102000200030003f90600048ad0080005800000000a00067fffffffffffffff040007bfb999999999999a0b0028000000" +
		"0773746f6120cf830f0029080000000300000001ffffffff0000012c0f002a0a00000014fffffffffffffff6fffffffffffffff7" +
		"fffffffffffffff8fffffffffffffff9fffffffffffffffafffffffffffffffbfffffffffffffffcfffffffffffffffdffffffff" +
		"fffffffeffffffffffffffff00000000000000000000000000000001000000000000000200000000000000030000000000000004" +
		"000000000000000500000000000000060000000000000007000000000000000800000000000000090e002b02000000030100010d" +
		"002c0b0c0000000200000001610b00010000000261610000000001620b0001000000026262000d002d0808000000000f002e0f00" +
		"0000020b00000001000000000b000000000c002f02012c010008fffe0000000500",
}

const shown = `1:true 2:false 3:-7 4:-30000 5:-2147483648 6:9223372036854775807 7:-0.1 40:"stoa σ" 41:[1 -1 300] ` +
	`42:[-10 -9 -8 -7 -6 -5 -4 -3 -2 -1 0 1 2 3 4 5 6 7 8 9] 43:[true false true] 44:{a:aa b:bb} 45:{} 46:[[""] []] ` +
	`47:true `

// parse reads the struct field by field.
func parse(r *thrift.Reader) string {
	var b strings.Builder
	for r.Struct("x"); r.Next(); {
		fmt.Fprintf(&b, "%d:", r.Field())
		switch r.Field() {
		case 1, 2:
			fmt.Fprint(&b, r.Bool("bool"))
		case 3:
			fmt.Fprint(&b, r.I8("i8"))
		case 4:
			fmt.Fprint(&b, r.I16("i16"))
		case 5:
			fmt.Fprint(&b, r.I32("i32"))
		case 6:
			fmt.Fprint(&b, r.I64("i64"))
		case 7:
			fmt.Fprint(&b, r.Double("double"))
		case 40:
			fmt.Fprintf(&b, "%q", r.String("string"))
		case 41:
			list(&b, r, thrift.I32, func() any { return r.I32("") })
		case 42:
			list(&b, r, thrift.I64, func() any { return r.I64("") })
		case 43:
			list(&b, r, thrift.Bool, func() any { return r.Bool("") })
		case 44:
			var kv []string
			for range r.Map("map", thrift.Bytes, thrift.Struct) {
				k := r.String("key")
				for r.Struct("value"); r.Next(); {
					kv = append(kv, k+":"+r.String("twice"))
				}
			}
			fmt.Fprintf(&b, "{%s}", strings.Join(kv, " "))
		case 45:
			for range r.Map("none", thrift.I32, thrift.I32) {
				fmt.Fprint(&b, "an entry")
			}
			fmt.Fprint(&b, "{}")
		case 46:
			list(&b, r, thrift.List, func() any {
				var in strings.Builder
				list(&in, r, thrift.Bytes, func() any { return fmt.Sprintf("%q", r.String("")) })
				return in.String()
			})
		case 47:
			for r.Struct("inner"); r.Next(); {
				fmt.Fprint(&b, r.Field() == 300 && r.Bool("far"))
			}
		}
		b.WriteByte(' ')
	}
	return b.String()
}

func list(b *strings.Builder, r *thrift.Reader, elem thrift.Type, item func() any) {
	var all []any
	for range r.List("list", elem) {
		all = append(all, item())
	}
	fmt.Fprint(b, all)
}

func cursor(b []byte) *wire.Cursor {
	return wire.NewCursor(b, fault.Span{Object: "t", Off: 100, Len: int64(len(b))}, "")
}

// TestReadsWhatApacheThriftWrote reads all but the last field, whose number is -2: that is refused.
func TestReadsWhatApacheThriftWrote(t *testing.T) {
	for p, text := range written {
		b, _ := hex.DecodeString(text)
		c := cursor(b)
		if parse(thrift.NewReader(c, p)); c.Err() == nil || !strings.Contains(c.Err().Error(), "field -2, ") {
			t.Errorf("%s: expected that field -2 is refused, found %v", p, c.Err())
		}
		c = cursor(append(numbered(p, text), 0xee))
		if got := parse(thrift.NewReader(c, p)); c.Err() != nil || got != shown || c.Left() != 1 {
			t.Errorf("%s: %v, %d left\n got %s\nwant %s", p, c.Err(), c.Left(), got, shown)
		}
	}
}

// numbered returns what Apache Thrift wrote without the last field, whose number is below 1.
func numbered(p thrift.Protocol, text string) []byte {
	b, _ := hex.DecodeString(text)
	size := map[thrift.Protocol]int{thrift.Compact: 3, thrift.Binary: 7}[p]
	return append(b[:len(b)-size-1], 0) // the field, and the end of the struct after it
}

func TestWritesAsApacheThriftDoes(t *testing.T) {
	for p, text := range written {
		w := thrift.NewWriter(p)
		write(w)
		if got := hex.EncodeToString(w.Encoded()); got != text {
			t.Errorf("%s:\n got %s\nwant %s", p, got, text)
		}
	}
}

func write(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.Bool(1, true)
	w.Bool(2, false)
	w.I8(3, -7)
	w.I16(4, -30000)
	w.I32(5, -1<<31)
	w.I64(6, 1<<63-1)
	w.Double(7, -0.1)
	w.String(40, "stoa σ")
	w.List(41, thrift.I32, 3)
	for _, v := range []int32{1, -1, 300} {
		w.I32(thrift.Item, v)
	}
	w.List(42, thrift.I64, 20)
	for i := range int64(20) {
		w.I64(thrift.Item, i-10)
	}
	w.List(43, thrift.Bool, 3)
	w.Bool(thrift.Item, true)
	w.Bool(thrift.Item, false)
	w.Bool(thrift.Item, true)
	w.Map(44, thrift.Bytes, thrift.Struct, 2)
	for _, k := range []string{"a", "b"} {
		w.String(thrift.Item, k)
		w.Struct(thrift.Item)
		w.String(1, k+k)
		w.End()
	}
	w.Map(45, thrift.I32, thrift.I32, 0)
	w.List(46, thrift.List, 2)
	w.List(thrift.Item, thrift.Bytes, 1)
	w.Bytes(thrift.Item, nil)
	w.List(thrift.Item, thrift.Bytes, 0)
	w.Struct(47)
	w.Bool(300, true)
	w.End()
	w.I32(-2, 5)
	w.End()
}

// Our writer writes the struct's set as a list, so only its type differs.
func init() {
	written[thrift.Compact] = strings.Replace(written[thrift.Compact], "1a31", "1931", 1)
	written[thrift.Binary] = strings.Replace(written[thrift.Binary], "0e002b", "0f002b", 1)
}

func TestSetsAreRead(t *testing.T) {
	for p, text := range map[thrift.Protocol]string{thrift.Compact: "1a15" + "06" + "00",
		thrift.Binary: "0e0001" + "0800000001" + "00000003" + "00"} {
		b, _ := hex.DecodeString(text)
		r := thrift.NewReader(cursor(b), p)
		var got []int32
		for r.Struct(""); r.Next(); {
			for range r.List("set", thrift.I32) {
				got = append(got, r.I32(""))
			}
		}
		if r.Err() != nil || fmt.Sprint(got) != "[3]" {
			t.Error(p, got, r.Err())
		}
	}
}

// The nodes of Describe cover every byte, also of unknown fields, and the depth returns to its initial value.
func TestNodesOwnEveryByte(t *testing.T) {
	for p, text := range written {
		b := numbered(p, text)
		for name, read := range map[string]func(*thrift.Reader){
			"known": func(r *thrift.Reader) { parse(r) },
			"unknown": func(r *thrift.Reader) {
				for r.Struct("x"); r.Next(); {
				}
			},
		} {
			var cov region.Coverage
			var lines []string
			c := cursor(b)
			c.Trace(func(n region.Node) {
				cov.Add(n)
				lines = append(lines, fmt.Sprintf("%d %s=%s", n.Depth, n.Name, n.Value))
			}, 1)
			read(thrift.NewReader(c, p))
			gaps, overlaps := cov.Check(fault.Span{Object: "t", Off: 100, Len: int64(len(b))})
			if c.Err() != nil || len(gaps)+len(overlaps) > 0 {
				t.Errorf("%s, %s: %v, gaps %v, overlaps %v\n%s", p, name, c.Err(), gaps, overlaps,
					strings.Join(lines, "\n"))
			}
			if last := lines[len(lines)-1]; last != "2 stop=" {
				t.Errorf("%s, %s: the last node is %s", p, name, last)
			}
			if name == "unknown" && !strings.Contains(strings.Join(lines, "\n"), "2 field 44=not known: map") {
				t.Error(lines)
			}
		}
	}
}

func TestErrorsSayWhere(t *testing.T) {
	for _, x := range []struct{ about, bytes, want string }{
		{"cut", "1502", "t[102+0]: corrupt: x: the bytes end where a field or the end of the struct should be"},
		{"wrong type", "180161", "t[100+1]: corrupt: x.number: it is a value of type string, not i32"},
		{"too wide", "15feffffffff07", "t[101+6]: corrupt: x.number: 137438953471 does not fit 32 bits"},
		{"string past the end", "2805616200", "t[101+1]: corrupt: x.text: 5 bytes are declared, 3 are left"},
		{"a list of very many", "39f6ffffffff0f0200",
			"t[101+1]: corrupt: x.list: 4294967295 elements, but the 2 bytes left hold at most 2"},
		{"a list of others", "392802616200", "t[101+1]: corrupt: x.list: elements of type string, not struct"},
		{"in the third struct", "393c" + "00" + "00" + "1801" + "6100",
			"t[104+1]: corrupt: x.list[2].n: it is a value of type string, not i32"},
		{"no such type", "1e", "t[100+1]: corrupt: x: a field of type 14, which does not exist"},
		{"no such element", "491f00", "t[101+1]: corrupt: x.field 4: elements of type 15, which does not exist"},
	} {
		b, _ := hex.DecodeString(x.bytes)
		for _, traced := range []bool{false, true} {
			c := cursor(b)
			if traced {
				c.Trace(func(region.Node) {}, 0)
			}
			r := thrift.NewReader(c, thrift.Compact)
			for r.Struct("x"); r.Next(); {
				switch r.Field() {
				case 1:
					r.I32("number")
				case 2:
					r.String("text")
				case 3:
					for range r.List("list", thrift.Struct) {
						for r.Struct(""); r.Next(); {
							r.I32("n")
						}
					}
				}
			}
			if err := c.Err(); err == nil || err.Error() != x.want || !errors.Is(err, fault.Corrupt) {
				t.Errorf("%s: %v\nwant %s", x.about, err, x.want)
			}
		}
	}
}

func TestNestingHasAnEnd(t *testing.T) {
	deep := strings.Repeat("1c", 1000)
	b, _ := hex.DecodeString(deep)
	lists, _ := hex.DecodeString("19" + strings.Repeat("19", 1000))
	for name, b := range map[string][]byte{"structs": b, "lists": lists} {
		r := thrift.NewReader(cursor(b), thrift.Compact)
		for r.Struct("x"); r.Next(); {
		}
		if r.Err() == nil || !strings.Contains(r.Err().Error(), "nested deeper than 32") {
			t.Error(name, r.Err())
		}
	}
	var dive func(r *thrift.Reader)
	dive = func(r *thrift.Reader) {
		for r.Struct("s"); r.Next(); {
			dive(r)
		}
	}
	r := thrift.NewReader(cursor(b), thrift.Compact)
	if dive(r); r.Err() == nil || !strings.Contains(r.Err().Error(), "nested deeper than 32") {
		t.Error(r.Err())
	}
}

// Values that a parser does not read are skipped: fields, elements, values of maps, the rest of a list.
func TestWhatIsNotTaken(t *testing.T) {
	for p, text := range written {
		b := numbered(p, text)
		r := thrift.NewReader(cursor(b), p)
		var got []string
		for r.Struct("x"); r.Next(); {
			switch r.Field() {
			case 41:
				for i := range r.List("list", thrift.I32) {
					if i == 1 {
						break
					}
					got = append(got, fmt.Sprint(r.I32("")))
				}
			case 42:
				for i := range r.List("list", thrift.I64) {
					if i%9 == 0 {
						got = append(got, fmt.Sprint(r.I64("")))
					}
				}
			case 44:
				for range r.Map("map", thrift.Bytes, thrift.Struct) {
					got = append(got, r.String("key"))
				}
			case 47:
				for r.Struct("inner"); r.Next(); {
					got = append(got, fmt.Sprint(r.Bool("far")))
				}
			}
		}
		if want := "[1 -10 -1 8 a b true]"; r.Err() != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v %v, want %s", p, got, r.Err(), want)
		}
	}
}

// Truncated anywhere and with any byte changed: no panic, and every error has a location.
func TestDamage(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for p, text := range written {
		good := numbered(p, text)
		for i := range good {
			c := cursor(good[:i])
			parse(thrift.NewReader(c, p))
			if c.Err() == nil {
				t.Errorf("%s: cut at %d and no error", p, i)
			}
			for range 16 {
				b := append([]byte(nil), good...)
				b[i] = byte(rnd.UintN(256))
				check(t, b, p)
			}
		}
	}
}

// TestFieldsComeOnce: a struct with the same field twice is damaged, in both protocols: the stop between two structs
// was lost.
func TestFieldsComeOnce(t *testing.T) {
	for p, text := range map[thrift.Protocol]string{
		thrift.Compact: "15" + "02" + "05" + "0204" + "00", // field 1, and field 1 with a long head
		thrift.Binary:  "08" + "0001" + "00000001" + "08" + "0001" + "00000002" + "00",
	} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		c := cursor(b)
		r := thrift.NewReader(c, p)
		var got []int32
		for r.Struct(""); r.Next(); {
			got = append(got, r.I32("n"))
		}
		if err := c.Err(); err == nil || !strings.Contains(err.Error(), "field 1 comes twice") || len(got) != 1 {
			t.Errorf("%s: read %v, %v", p, got, err)
		}
	}
}

func check(t *testing.T, b []byte, p thrift.Protocol) {
	for _, traced := range []bool{false, true} {
		c := cursor(b)
		if traced {
			c.Trace(func(n region.Node) {
				if n.At.Off < 100 || n.At.End() > int64(100+len(b)) {
					t.Fatalf("%x: node %v", b, n)
				}
			}, 0)
		}
		parse(thrift.NewReader(c, p))
		var e *fault.Error
		if err := c.Err(); err != nil &&
			(!errors.As(err, &e) || e.Class != fault.Corrupt || e.At.Object != "t" || e.At.Off < 100 ||
				e.At.End() > int64(100+len(b))) {
			t.Fatalf("%x: %v", b, err)
		}
	}
}

func FuzzReader(f *testing.F) {
	for p, text := range written {
		b := numbered(p, text)
		f.Add(b, p == thrift.Binary)
	}
	f.Fuzz(func(t *testing.T, b []byte, binary bool) {
		p := thrift.Compact
		if binary {
			p = thrift.Binary
		}
		check(t, b, p)
	})
}

func BenchmarkRead(b *testing.B) {
	for p, text := range written {
		raw := numbered(p, text)
		b.Run(p.String(), func(b *testing.B) {
			r := thrift.NewReader(nil, p)
			b.ReportAllocs()
			for b.Loop() {
				c := cursor(raw)
				r.Reset(c)
				for r.Struct("x"); r.Next(); {
				}
			}
		})
	}
}
