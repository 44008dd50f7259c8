package stoa

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/foreign"
	"stoa/internal/watched"
	"stoa/store"
)

// Probe returns the format of a target: o.From if that is set, else the format that is most certain. The error for a
// file that no format recognizes names its kind, if that is known.
func Probe(ctx context.Context, tg format.Target, o OpenOptions) (*format.Format, error) {
	formats := o.formats()
	if o.From != "" {
		for i := range formats {
			if formats[i].Name == o.From {
				return &formats[i], nil
			}
		}
		return nil, fault.Invalidf("there is no format %q", o.From)
	}
	if tg.Limits == (format.Limits{}) {
		tg.Limits = o.Limits
	}
	key, known := probedKey(ctx, tg, formats)
	if known {
		if f, ok := format.SessionOf(ctx).Load(key); ok {
			return f.(*format.Format), nil
		}
	}
	f, err := probe(ctx, tg, formats)
	if known && err == nil && f.Create == nil { // stoa may replace what it wrote
		format.SessionOf(ctx).Store(key, f)
	}
	return f, err
}

// probed is the session key of a directory's format: probing a directory is costly, because each format looks at much
// of its contents.
type probed struct {
	tree        any
	name, stamp string
	limits      format.Limits
	formats     *format.Format // the first of the formats that were probed
	n           int
}

// probedKey returns the key of a directory. known reports whether it can be kept in the session of ctx.
func probedKey(ctx context.Context, tg format.Target, formats []format.Format) (key probed, known bool) {
	if format.SessionOf(ctx) == nil || len(formats) == 0 {
		return key, false
	}
	_, same := store.Lasting(tg.Tree)
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if same == nil || err != nil || !info.Dir {
		return key, false
	}
	return probed{same, tg.Name, info.Stamp, tg.Limits, &formats[0], len(formats)}, true
}

// probe asks all formats.
func probe(ctx context.Context, tg format.Target, formats []format.Format) (*format.Format, error) {
	best, sure := -1, format.No
	var failed error // a failure of one format does not keep the others from being asked
	plain := tg
	seen := &watched.Tree{Tree: tg.Tree, Name: tg.Name}
	tg.Tree = seen
	for i, f := range formats {
		if f.Probe == nil {
			continue
		}
		m, err := f.Probe(ctx, tg)
		if ctx.Err() != nil { // the format's answer then comes from the cancellation, not from the target
			return nil, ctx.Err()
		}
		if err != nil && failed == nil {
			failed = err
		}
		if err == nil && m > sure {
			best, sure = i, m
		}
	}
	switch {
	case best < 0 && seen.Failed != nil:
		return nil, seen.Failed
	case best < 0 && failed != nil && !store.Failing(failed): // otherwise the failure is that of opening a directory
		return nil, failed
	case sure < format.Certain && seen.Own != nil: // another format may be more certain
		return nil, seen.Own
	case seen.Around != nil: // the owner of a directory shows in its contents
		return nil, seen.Around
	case sure == format.Maybe:
		if f := byName(tg, formats); f != nil {
			return f, nil
		}
		if marked(&formats[best]) && namesText(tg, formats) { // a few magic bytes prove nothing against a text's name
			err, _ := strange(ctx, plain, formats)
			return nil, err
		}
	case best < 0:
		err, unknown := strange(ctx, plain, formats)
		if unknown {
			if f := byName(tg, formats); f != nil {
				return f, nil
			}
		}
		return nil, err
	}
	return &formats[best], nil
}

// ByExtension returns the format whose file extension a name has, or nil. The longest matching extension wins.
func ByExtension(formats []format.Format, name string) (best *format.Format) {
	base, longest := strings.ToLower(path.Base(filepath.ToSlash(name))), 0
	for i := range formats {
		for _, e := range formats[i].Extensions {
			if len(e) > longest && strings.HasSuffix(base, e) {
				best, longest = &formats[i], len(e)
			}
		}
	}
	return best
}

// byName returns the format with the extension of a file whose content no format recognizes, or nil. The beginning of
// the file may be damaged; that format then reports the damage and recovers the rest. Text formats have no magic that
// could be lost.
func byName(tg format.Target, formats []format.Format) *format.Format {
	base := strings.ToLower(path.Base(filepath.ToSlash(tg.Name)))
	for i, f := range formats {
		if f.Open == nil || !marked(&f) {
			continue
		}
		if slices.ContainsFunc(f.Extensions, func(ext string) bool { return strings.HasSuffix(base, ext) }) {
			return &formats[i]
		}
	}
	return nil
}

// marked reports whether files of a format can be recognized by magic; text files cannot.
func marked(f *format.Format) bool { return f.Describe != nil || f.ByPages() }

// namesText reports whether a name has the extension of a text format, compressed or not.
func namesText(tg format.Target, formats []format.Format) bool {
	f := ByExtension(formats, strings.TrimSuffix(strings.ToLower(tg.Name), ".gz"))
	return f != nil && !marked(f)
}

// strange returns an error that names the kind of a file whose format is not supported. unknown: the file exists, but
// its kind is not known.
func strange(ctx context.Context, tg format.Target, formats []format.Format) (err error, unknown bool) {
	at := fault.Span{Object: tg.Name}
	src, err := tg.Tree.Open(ctx, tg.Name)
	if info, serr := tg.Tree.Stat(ctx, tg.Name); err != nil && (serr != nil || !info.Dir) {
		return err, false
	}
	if err != nil {
		return fault.Unsupportedf(at, "", "no format that stoa knows"), false
	}
	defer src.Close()
	head := make([]byte, 512)
	n, err := src.ReadAt(ctx, head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err, false
	}
	head = head[:n]
	if n == 0 && strings.HasPrefix(path.Base(filepath.ToSlash(tg.Name)), ".stoa-tmp-") {
		return fault.Unsupportedf(at, "", "the file is empty: its writer ended before it wrote anything"), false
	}
	if n == 0 {
		return fault.Unsupportedf(at, "", "the file is empty"), true // a disk may have lost its content
	}
	kinds := foreign.Kinds
	for i := range formats {
		kinds = append(kinds[:len(kinds):len(kinds)], formats[i].Magics...)
	}
	if ours := foreign.Ours(ctx, tg.Tree, tg.Name, head); ours != "" {
		return fault.Unsupportedf(at, "", "this is %s, not a table", ours), false
	}
	for _, k := range kinds {
		if k.Of(head) {
			return fault.Unsupportedf(at, "", "this is %s, which stoa does not read", k.Name), false
		}
	}
	if noObjects(tg.Name, head) {
		return fault.Unsupportedf(at, "", "these are JSON lines, but a row is no object"), false
	}
	only := ""
	if store.Unsized(src) {
		only = " by its beginning, which is all that is checked in a pipe"
	}
	return fault.Unsupportedf(at, "", "not of a known format%s (it begins with %s); the format can be forced",
		only, preview(head)), true
}

// noObjects reports whether a file whose name says JSON lines begins (head) with a line that is JSON but not an object.
func noObjects(name string, head []byte) bool {
	if ext := strings.ToLower(path.Ext(filepath.ToSlash(name))); ext != ".jsonl" && ext != ".ndjson" {
		return false
	}
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte{'\n'})
	return json.Valid(line)
}

func preview(b []byte) string {
	b = b[:min(len(b), 8)]
	for _, c := range b {
		if c < ' ' || c > '~' {
			return fmt.Sprintf("bytes % x", b)
		}
	}
	return fmt.Sprintf("%q", b)
}
