package diff

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// show formats a cell of side 0 or 1 for people.
func (s *shape) show(b []byte, side int) string {
	var out strings.Builder
	s.print(&out, b, side)
	return out.String()
}

func (s *shape) print(w *strings.Builder, b []byte, side int) {
	if b[0] == 0 {
		w.WriteString("null")
		return
	}
	coded := s.coded && s.text == side+1 && b[0] != uncoded
	b = b[1:]
	switch s.kind {
	case Integer:
		m, _ := binary.Uvarint(b[1:])
		w.WriteString([]string{"", "-"}[b[0]] + strconv.FormatUint(m, 10))
	case Float:
		w.WriteString(strconv.FormatFloat(math.Float64frombits(binary.BigEndian.Uint64(b)), 'g', -1, 64))
	case Mixed:
		if b[8] == 1 {
			w.WriteString(decimalText(b[9:]))
			return
		}
		w.WriteString(strconv.FormatFloat(math.Float64frombits(binary.BigEndian.Uint64(b)), 'g', -1, 64))
	case Decimal:
		w.WriteString(decimalText(b))
	case Boolean:
		w.WriteString(strconv.FormatBool(b[0] == 1))
	case Instant:
		sec, k := binary.Varint(b)
		nano, _ := binary.Uvarint(b[k:])
		w.WriteString(s.clock.text(sec, nano))
	case List:
		n, k := binary.Uvarint(b)
		b = b[k:]
		w.WriteByte('[')
		for i := range n {
			if i > 0 {
				w.WriteString(", ")
			}
			var c []byte
			c, b = s.children[0].cut(b)
			s.children[0].print(w, c, side)
		}
		w.WriteByte(']')
	case Struct:
		w.WriteByte('{')
		for i, child := range s.children {
			if i > 0 {
				w.WriteString(", ")
			}
			var c []byte
			c, b = child.cut(b)
			w.WriteString(s.names[i] + ": ")
			child.print(w, c, side)
		}
		w.WriteByte('}')
	case Union:
		w.WriteString("[" + s.names[b[0]] + ", ")
		s.children[b[0]].print(w, b[1:], side)
		w.WriteByte(']')
	default:
		s.printBytes(w, b, coded)
	}
}

// printBytes prints text or bytes: in base64 if they were decoded from it, as text if they are UTF-8, otherwise in
// hexadecimal.
func (s *shape) printBytes(w *strings.Builder, b []byte, coded bool) {
	_, k := binary.Uvarint(b)
	switch b = b[k:]; {
	case s.kind != Bytes:
		w.Write(b)
	case coded:
		w.WriteString(strconv.Quote(base64.StdEncoding.EncodeToString(b)))
	case utf8.Valid(b):
		w.WriteString(strconv.Quote(string(b)))
	default:
		fmt.Fprintf(w, "0x%x", b)
	}
}

func decimalText(b []byte) string {
	exp, k := binary.Varint(b[1:])
	_, j := binary.Uvarint(b[1+k:])
	digits := new(big.Int).SetBytes(b[1+k+j:]).String()
	switch {
	case exp > 0:
		digits += strings.Repeat("0", int(exp))
	case exp < 0:
		if n := int(-exp) + 1 - len(digits); n > 0 {
			digits = strings.Repeat("0", n) + digits
		}
		at := len(digits) + int(exp)
		digits = digits[:at] + "." + digits[at:]
	}
	if b[0] == 1 {
		return "-" + digits
	}
	return digits
}

func (c clock) text(sec int64, nano uint64) string {
	t := time.Unix(sec, int64(nano)).UTC()
	switch {
	case c == span:
		return fmt.Sprintf("%d.%09ds", sec, nano)
	case c == timeOfDay:
		return t.Format("15:04:05.999999999")
	case c == day && sec%86400 == 0 && nano == 0:
		return t.Format("2006-01-02")
	}
	return t.Format("2006-01-02 15:04:05.999999999")
}
