package kudugen

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Dump is the parsed output of `kudu fs dump cfile`.
type Dump struct {
	Footer map[string]string // fields by dotted name, as printed: "posidx_info.root_block.offset"
	Meta   map[string][]byte // footer metadata, unescaped
	Lines  []string          // one for each value
}

// ParseDump parses a dump. A value never contains a line break: both kinds of Kudu's escaping write it as \n.
func ParseDump(text []byte) (Dump, error) {
	d := Dump{Footer: map[string]string{}, Meta: map[string][]byte{}}
	i := bytes.Index(text, []byte("\nFooter:\n"))
	if !bytes.HasPrefix(text, []byte("Header:\n")) || i < 0 {
		return d, fmt.Errorf("not a dump of a CFile: %.60q", text)
	}
	foot, rest, ok := bytes.Cut(text[i+len("\nFooter:\n"):], []byte("\n\n"))
	if !ok {
		return d, fmt.Errorf("the dump ends in the footer")
	}
	var path []string
	key := ""
	for l := range strings.SplitSeq(string(foot), "\n") {
		l = strings.TrimSpace(l)
		name, val, isField := strings.Cut(l, ": ")
		switch {
		case strings.HasSuffix(l, " {"):
			path = append(path, strings.TrimSuffix(l, " {"))
		case l == "}" && len(path) > 0:
			path = path[:len(path)-1]
		case !isField:
			return d, fmt.Errorf("footer line %q", l)
		case len(path) == 1 && path[0] == "metadata" && name == "key":
			key = strings.Trim(val, `"`)
		case len(path) == 1 && path[0] == "metadata" && name == "value":
			v, err := unescapeTwice(val)
			if err != nil {
				return d, fmt.Errorf("metadata %s: %w", key, err)
			}
			d.Meta[key] = v
		default:
			d.Footer[strings.Join(append(path[:len(path):len(path)], name), ".")] = val
		}
	}
	if len(path) > 0 {
		return d, fmt.Errorf("the footer ends inside of %s", strings.Join(path, "."))
	}
	if len(rest) > 0 {
		if rest[len(rest)-1] != '\n' {
			return d, fmt.Errorf("the dump is truncated: it ends with %.60q", rest[max(0, len(rest)-60):])
		}
		d.Lines = strings.Split(string(rest[:len(rest)-1]), "\n")
	}
	return d, nil
}

// unescapeTwice reads a metadata value, which this version of Kudu prints twice: "a""a".
func unescapeTwice(s string) ([]byte, error) {
	if len(s)%2 != 0 || s[:len(s)/2] != s[len(s)/2:] {
		return nil, fmt.Errorf("%.60q is not the same text twice", s)
	}
	return unescape(s[:len(s)/2])
}

// unescape reads quoted text: \n \r \t \" \' \\, \ooo (strings), \xhh (binary).
func unescape(s string) ([]byte, error) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return nil, fmt.Errorf("%.60q is not quoted", s)
	}
	s = s[1 : len(s)-1]
	out := []byte{}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			if s[i] == '"' {
				return nil, fmt.Errorf("an unescaped quote at %d", i)
			}
			out = append(out, s[i])
			continue
		}
		if i++; i >= len(s) {
			return nil, fmt.Errorf("it ends with a backslash")
		}
		if j := strings.IndexByte("nrt\"'\\", s[i]); j >= 0 {
			out = append(out, "\n\r\t\"'\\"[j])
			continue
		}
		digits, base := 3, 8
		if s[i] == 'x' {
			i++
			digits, base = 2, 16
		}
		if i+digits > len(s) {
			return nil, fmt.Errorf("a truncated escape at %d", i)
		}
		v, err := strconv.ParseUint(s[i:i+digits], base, 8)
		if err != nil {
			return nil, err
		}
		out = append(out, byte(v))
		i += digits - 1
	}
	return out, nil
}

// Value parses line i as a value of column c. exact is false if Kudu's text does not determine the value: floats lose
// their last bit, and 128-bit numbers lose leading zeros of the middle 19 digits.
func (d Dump) Value(i int, c Column) (v Cell, exact bool, err error) {
	s := d.Lines[i]
	if s == "NULL" {
		return nil, true, nil
	}
	switch c.Type {
	case "string", "varchar", "binary":
		b, err := unescape(s)
		return Cell(b), true, err
	case "bool":
		b, err := strconv.ParseBool(s)
		return Bool(b), true, err
	case "float":
		f, err := strconv.ParseFloat(s, 32)
		v = Int(4, int64(math.Float32bits(float32(f))))
		if math.IsNaN(f) {
			v = Int(4, 0x7fc00000)
		}
		return v, strings.Trim(s, "-0123456789") == "", err
	case "double":
		f, err := strconv.ParseFloat(s, 64)
		if math.IsNaN(f) {
			return Int(8, 0x7ff8000000000000), true, nil
		}
		return Double(f), true, err
	case "date":
		y, rest, ok := strings.Cut(s, "-")
		for len(y) < 4 {
			y = "0" + y
		}
		t, err := time.Parse("2006-01-02", y+"-"+rest)
		if !ok || err != nil {
			return nil, false, fmt.Errorf("%q is not a date", s)
		}
		return Int(4, floorDiv(t.Unix(), 86400)), true, nil
	case "unixtime_micros":
		return parseTime(s)
	case "decimal":
		text, suffix, ok := strings.Cut(s, "_D")
		if !ok || suffix != fmt.Sprint(8*c.Width()) {
			return nil, false, fmt.Errorf("%q is not a decimal of %d bytes", s, c.Width())
		}
		v, err = parseNumber(text, c.Width())
		return v, c.Width() < 16, err
	}
	v, err = parseNumber(s, c.Width())
	return v, c.Width() < 16, err
}

func parseTime(s string) (Cell, bool, error) {
	// -5828-10-06T…: years may be negative and have more or fewer digits than four, so not time.Parse alone
	year, rest, ok := strings.Cut(strings.TrimPrefix(s, "-"), "-")
	y, err := strconv.Atoi(year)
	if !ok || err != nil {
		return nil, false, fmt.Errorf("%q is not a time", s)
	}
	if strings.HasPrefix(s, "-") {
		y = -y
	}
	t, err := time.Parse("2006-01-02T15:04:05.000000Z", fmt.Sprintf("%04d-%s", 2000+floorMod(int64(y), 400), rest))
	if err != nil {
		return nil, false, err
	}
	cycles := floorDiv(int64(y)-2000-floorMod(int64(y), 400), 400) // 400 years are 146097 days
	return Int(8, t.UnixMicro()+cycles*146097*86400*1000000), true, nil
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// Agrees reports whether line i may be the text of v: the value is equal or, if the text is not exact, a neighbouring
// float, or the text that Kudu's bug produces for a 128-bit number.
func (d Dump) Agrees(i int, c Column, v Cell) bool {
	got, exact, err := d.Value(i, c)
	if err != nil || (got == nil) != (v == nil) {
		return false
	}
	if v == nil || bytes.Equal(got, v) {
		return true
	}
	switch {
	case exact:
		return false
	case c.Type == "float":
		diff := int64(int32(got.Signed().Int64())) - int64(int32(v.Signed().Int64()))
		return diff == 1 || diff == -1
	}
	return strings.TrimSuffix(d.Lines[i], "_D128") == int128Text(v)
}

// int128Text prints a number as Kudu 1.18.1 does: the leading digits, the middle 19 digits without leading zeros (a
// bug), and the last digit.
func int128Text(v Cell) string {
	s := v.Signed().String()
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	if len(s) <= 20 {
		return sign + s
	}
	head, mid, last := s[:len(s)-20], strings.TrimLeft(s[len(s)-20:len(s)-1], "0"), s[len(s)-1:]
	if mid == "" {
		mid = "0"
	}
	return sign + head + mid + last
}
