package kudu

import (
	"bytes"
	"fmt"
	"strings"
)

// A dump is what `kudu fs dump cfile` printed.
type dump struct {
	Footer map[string]string // top-level fields of the footer; metadata as metadata.KEY
	Lines  []string          // one per value
}

// parseDump splits the command's output: Header, blank line, Footer, blank line, values.
// A value never contains a line break: both escapings write it as \n.
func parseDump(text []byte) (dump, error) {
	d := dump{Footer: map[string]string{}}
	i := bytes.Index(text, []byte("Footer:\n"))
	if !bytes.HasPrefix(text, []byte("Header:\n")) || i < 0 {
		return d, fmt.Errorf("this is no dump of a CFile: %.60q", text)
	}
	foot, rest, ok := bytes.Cut(text[i+len("Footer:\n"):], []byte("\n\n"))
	if !ok {
		return d, fmt.Errorf("the dump ends in the footer")
	}
	depth, key := 0, ""
	for l := range strings.SplitSeq(string(foot), "\n") {
		name, val, isField := strings.Cut(strings.TrimSpace(l), ": ")
		switch {
		case strings.HasSuffix(l, " {"):
			depth++
		case strings.TrimSpace(l) == "}":
			depth--
		case !isField:
			return d, fmt.Errorf("footer line %q", l)
		case depth == 0:
			d.Footer[name] = val
		case name == "key":
			key = strings.Trim(val, `"`)
		case name == "value":
			d.Footer["metadata."+key] = val
		}
	}
	if len(rest) > 0 {
		if rest[len(rest)-1] != '\n' {
			return d, fmt.Errorf("the dump is cut: it ends with %.60q", rest[max(0, len(rest)-60):])
		}
		d.Lines = strings.Split(string(rest[:len(rest)-1]), "\n")
	}
	return d, nil
}

// metadata returns a metadata value as the dump prints it: escaped as by protobuf, twice (a bug of the redaction code).
func metadata(v []byte) string {
	var b strings.Builder
	for _, c := range v {
		switch {
		case escapeCommon(&b, c):
		case c < 32 || c > 126:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `""` + b.String() + `"`
}

// compare compares the dump's values with the expected ones; the error describes the first difference and counts them.
func (d dump) compare(c column, want []cell) error {
	bad, first := 0, ""
	for i := range min(len(want), len(d.Lines)) {
		if w := dumped(c.Type, want[i]); w != d.Lines[i] {
			if bad++; bad == 1 {
				first = fmt.Sprintf("row %d: Kudu reads %.200s, meant %.200s", i, d.Lines[i], w)
			}
		}
	}
	if len(want) != len(d.Lines) {
		return fmt.Errorf("Kudu reads %d values, meant %d; %d differ %s", len(d.Lines), len(want), bad, first)
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d values differ; %s", bad, len(want), first)
	}
	return nil
}

// facts compares the footer with what was requested. A field that is absent from the text is "".
func (d dump) facts(want map[string]string) error {
	for k, w := range want {
		if g := d.Footer[k]; g != w {
			return fmt.Errorf("footer: %s is %.300s, meant %.300s", k, g, w)
		}
	}
	return nil
}
