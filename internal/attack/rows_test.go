package attack

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

type cell struct{ name, value string }

// cellsOf returns the cells of a row, in order.
func cellsOf(line string) (out []cell) {
	d := json.NewDecoder(strings.NewReader(line))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return out
		}
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return out
		}
		name, _ := k.(string)
		out = append(out, cell{name, string(v)})
	}
	return out
}

// difference describes the first difference between ref and out.
func difference(ref, out []string) string {
	if len(ref) != len(out) {
		return fmt.Sprintf("%d rows came out, expected %d", len(out), len(ref))
	}
	for i := range ref {
		if ref[i] == out[i] {
			continue
		}
		was, is := cellsOf(ref[i]), cellsOf(out[i])
		if len(was) != len(is) {
			return fmt.Sprintf("row %d has %d columns of %d", i, len(is), len(was))
		}
		for k := range was {
			if was[k].name != is[k].name {
				return fmt.Sprintf("column %q is called %q", was[k].name, is[k].name)
			}
			if was[k].value != is[k].value {
				return fmt.Sprintf("row %d, column %s is %.80s, was %.80s", i, was[k].name, is[k].value, was[k].value)
			}
		}
	}
	return "nothing differs"
}

// binaryOf reports whether some values are, as JSON shows bytes, the bytes of original texts or decimal numbers;
// numbers may be in either byte order.
func binaryOf(was, is []string) bool {
	bytesOf, digits := map[string]bool{}, map[string]bool{}
	for _, v := range is {
		var raw []byte
		if v[0] != '"' || json.Unmarshal([]byte(v), &raw) != nil || len(raw) == 0 {
			continue
		}
		bytesOf[string(raw)] = true
		if len(raw) <= 32 { // a decimal has at most 32 bytes
			back := slices.Clone(raw)
			slices.Reverse(back)
			digits[digitsOf(unscaled(raw))], digits[digitsOf(unscaled(back))] = true, true
		}
	}
	if len(bytesOf) == 0 {
		return false
	}
	delete(digits, "")
	same := map[string]bool{} // values that are equal prove nothing
	for _, v := range is {
		same[v] = true
	}
	return slices.ContainsFunc(was, func(v string) bool {
		var text string
		return !same[v] && v[0] == '"' && json.Unmarshal([]byte(v), &text) == nil &&
			(bytesOf[text] || digits[digitsOf(text)])
	})
}

// unscaled formats the whole number in big-endian bytes, in two's complement.
func unscaled(raw []byte) string {
	n := new(big.Int).SetBytes(raw)
	if len(raw) > 0 && raw[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(raw))))
	}
	return n.String()
}

// digitsOf returns the digits of a number, without leading and trailing zeros.
func digitsOf(text string) string {
	text, _, _ = strings.Cut(text, "e")
	return strings.TrimRight(strings.TrimLeft(strings.Replace(text, ".", "", 1), "-0"), "0")
}

// kindOf returns the kind of JSON value in a cell, such as text, number or list. More than 100 is null, which belongs
// to every kind.
func kindOf(x cell) int {
	switch v := x.value[0]; v {
	case '"', '[', '{':
		return int(v)
	case 'n':
		return 1000
	case 't', 'f':
		return 't' - 20
	}
	return '0'
}

// columnShape describes a column: the shapes of its values, and the scalars in them.
type columnShape struct {
	name   string
	shapes map[string]bool
	values []string
}

// shapesOf returns the columns of rows, as in the first row.
func shapesOf(rows []string) (out []columnShape) {
	for i, l := range rows {
		for k, x := range cellsOf(l) {
			if i == 0 {
				out = append(out, columnShape{name: x.name, shapes: map[string]bool{}})
			}
			if k < len(out) {
				out[k].shapes[shapeOf(x.value)] = true
				out[k].values = scalarsOf(out[k].values, x.value)
			}
		}
	}
	return out
}

// scalarsOf appends the scalars in a value.
func scalarsOf(out []string, v string) []string {
	switch kindOf(cell{value: v}) {
	case '[':
		var items []json.RawMessage
		json.Unmarshal([]byte(v), &items)
		for _, x := range items {
			out = scalarsOf(out, string(x))
		}
		return out
	case '{':
		for _, x := range cellsOf(v) {
			out = scalarsOf(out, x.value)
		}
		return out
	}
	return append(out, v)
}

// shapeOf returns a JSON value in which each scalar is replaced by the simplest one of its kind.
func shapeOf(v string) string {
	switch kindOf(cell{value: v}) {
	case '0':
		return "0"
	case '"':
		return `""`
	case '[':
		var items []json.RawMessage
		if json.Unmarshal([]byte(v), &items) != nil {
			return v
		}
		var in []string
		for _, x := range items {
			if s := shapeOf(string(x)); !slices.Contains(in, s) {
				in = append(in, s)
			}
		}
		return "[" + strings.Join(in, ",") + "]"
	case '{':
		var in []string
		for _, x := range cellsOf(v) {
			name, _ := json.Marshal(x.name)
			in = append(in, string(name)+":"+shapeOf(x.value))
		}
		return "{" + strings.Join(in, ",") + "}"
	}
	return v
}

// sameKind reports whether two values may have the same type, as far as JSON shows, including values inside lists and
// structs.
func sameKind(a, b string) bool {
	ka, kb := kindOf(cell{value: a}), kindOf(cell{value: b})
	if ka+kb >= 1000 {
		return true
	}
	if ka != kb {
		return false
	}
	switch ka {
	case '[':
		var x, y []json.RawMessage
		if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
			return false
		}
		for i := range min(len(x), len(y)) {
			if !sameKind(string(x[i]), string(y[i])) {
				return false
			}
		}
	case '{':
		return slices.EqualFunc(cellsOf(a), cellsOf(b), func(x, y cell) bool {
			return x.name == y.name && sameKind(x.value, y.value)
		})
	}
	return true
}

// subsequence reports whether out is ref without some rows.
func subsequence(ref, out []string) bool {
	j := 0
	for _, l := range out {
		for j < len(ref) && ref[j] != l {
			j++
		}
		if j == len(ref) {
			return false
		}
		j++
	}
	return true
}
