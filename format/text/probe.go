package text

import (
	"bytes"
	"context"
	"io"
	"iter"
	"strings"
	"unicode/utf8"

	"stoa/format"
)

// probeBytes is the number of bytes of a text that Probe reads.
const probeBytes = 64 << 10

// head returns the start of a text, decompressed; whole: it is the entire text.
func head(ctx context.Context, t format.Target) (b []byte, whole bool, err error) {
	src, err := t.Tree.Open(ctx, t.Name)
	if err != nil {
		return nil, false, err
	}
	defer src.Close()
	r := &sequential{ctx: ctx, src: src, off: t.At.From, end: -1}
	if t.At.Len() > 0 {
		r.end = t.At.To
	}
	in, err := newInputOf(r, t, t.Limits, probeBytes)
	if err != nil {
		return nil, false, err
	}
	b = in.rest()
	return b[:min(len(b), probeBytes)], in.err == io.EOF && len(b) <= probeBytes, nil
}

// isText reports whether b, which may be cut within a character, can be the start of a text.
func isText(b []byte) bool {
	for len(b) > 0 && len(b) >= utf8.UTFMax {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 || r < 0x20 && r != '\t' && r != '\n' && r != '\r' {
			return false
		}
		b = b[n:]
	}
	return bytes.IndexByte(b, 0) < 0
}

func hasExtension(name, ext string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".gz")
	return strings.HasSuffix(name, "."+ext)
}

// isObject reports whether the first line that is not blank is a JSON object.
func isObject(b []byte, whole bool) (match format.Match) {
	for len(b) > 0 {
		line, rest, found := bytes.Cut(b, []byte{'\n'})
		if p := (jsonParser{b: line}); p.peek() == '{' {
			if !found && !whole {
				return format.Maybe // the line is longer than b
			}
			if _, err := p.skip(); err != nil || p.end() != nil {
				return format.No
			}
			return format.Likely
		} else if p.at < len(line) {
			return format.No
		}
		b = rest
	}
	return format.No
}

func probeJSONL(ctx context.Context, t format.Target) (format.Match, error) {
	b, whole, err := head(ctx, t)
	if err != nil {
		return format.No, notDamage(err)
	}
	m := format.No
	if isText(b) {
		m = isObject(b, whole)
	}
	if m > format.No || !hasExtension(t.Name, "jsonl") && !hasExtension(t.Name, "ndjson") {
		return m, nil
	}
	if whole && len(bytes.TrimSpace(b)) == 0 {
		return format.Likely, nil
	}
	if isText(b) && delimited(b, whole, ',')+delimited(b, whole, '\t') > format.No && !mostlyObjects(b) {
		return format.No, nil // JSON lines only by its name
	}
	// damaged, or not text, such as a hole of zeros: the reader reports where
	if hasObject(b, whole) || !whole && beginsWithHole(b) {
		return format.Maybe, nil
	}
	return format.No, nil
}

// hasObject reports whether a line begins like a JSON object, and no line before it is a complete JSON value of another
// kind.
func hasObject(b []byte, whole bool) bool {
	for len(b) > 0 {
		line, rest, found := bytes.Cut(b, []byte{'\n'})
		p := jsonParser{b: line}
		if p.peek() == '{' {
			return true
		}
		if p.at < len(line) && (found || whole) {
			if _, err := p.skip(); err == nil && p.end() == nil {
				return false
			}
		}
		b = rest
	}
	return false
}

// mostlyObjects reports whether most lines are JSON objects, such as those around a damaged one.
func mostlyObjects(b []byte) bool {
	n := 0
	for line := range bytes.Lines(b) {
		switch p := (jsonParser{b: line}); {
		case p.peek() == 0 && p.at == len(line): // blank
		case p.isObject() == nil:
			n++
		default:
			n--
		}
	}
	return n > 0
}

// beginsWithHole reports whether b begins with a zero byte and has no line end.
func beginsWithHole(b []byte) bool { return len(b) > 0 && b[0] == 0 && bytes.IndexByte(b, '\n') < 0 }

func probeCSV(ctx context.Context, t format.Target, name string, comma byte) (format.Match, error) {
	b, whole, err := head(ctx, t)
	if line, _, ok := bytes.Cut(b, []byte{'\n'}); ok && err == nil && hasExtension(t.Name, name) && isText(line) &&
		!isText(b) {
		return format.Maybe, nil // a value is not text, such as one with a NUL: the reader reports where
	}
	if err != nil || !isText(b) {
		return format.No, notDamage(err)
	}
	object := isObject(b, whole) > format.Maybe
	switch {
	case hasExtension(t.Name, name) && object:
		return format.Maybe, nil
	case hasExtension(t.Name, name):
		return format.Likely, nil
	case object:
		return format.No, nil
	}
	return delimited(b, whole, comma), nil
}

// notDamage returns err, or nil for damage: a stream that cannot be decompressed is not text.
func notDamage(err error) error {
	if isCorrupt(err) {
		return nil
	}
	return err
}

// delimited returns Maybe if the first rows, at least two, have the same number of fields, at least two; else No.
func delimited(b []byte, whole bool, comma byte) format.Match {
	s := newCSVScanner(&input{buf: b, err: io.EOF}, comma)
	columns, rows := 0, 0
	for rows < 20 {
		err := s.next(false)
		if err == io.EOF {
			break
		}
		if !whole && len(s.in.rest()) == 0 {
			break // the last row may be truncated
		}
		if err != nil || rows > 0 && len(s.fields) != columns {
			return format.No
		}
		columns = len(s.fields)
		rows++
	}
	if columns < 2 || rows < 2 {
		return format.No
	}
	return format.Maybe
}

func list(ctx context.Context, t format.Target, kind string) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		e := format.Entry{Kind: kind, Rows: -1, Bytes: -1}
		if info, err := t.Tree.Stat(ctx, t.Name); err == nil {
			e.Bytes = info.Size
		}
		yield(e, nil)
	}
}
