package cfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// Format is CFile as the front of stoa sees it.
var Format = format.Format{
	Name:       "cfile",
	Title:      "Apache Kudu CFile v1 and v2: one column, with bloom, delta and ad-hoc index files; directories of them",
	Extensions: []string{".cfile"},
	Probe:      probe,
	List:       list,
	Open:       open,
	Describe:   describe,
	Verify:     verify,
	Recover:    recoverTable,
	Unchecked:  unchecked,
	Claims:     claims,
	ReadKeys:   readKeys,
	Create:     create,
	WriteKeys:  writeKeys,
	Codes:      Codes,
}

// probe looks at the magics at both ends.
func probe(ctx context.Context, tg format.Target) (format.Match, error) {
	if info, err := tg.Tree.Stat(ctx, tg.Name); err == nil && info.Dir {
		return probeDir(ctx, tg)
	}
	if m, streamed, err := probeStream(ctx, tg); streamed || err != nil {
		return m, err
	}
	src, base, size, err := tg.Open(ctx)
	if err != nil {
		return format.No, err
	}
	defer src.Close()
	var head, end [tail]byte
	if size < magicLen {
		return format.No, nil
	}
	n := min(size, tail)
	if err := readSome(ctx, src, head[:n], base); err != nil {
		return format.No, err
	}
	if err := readSome(ctx, src, end[tail-n:], base+size-n); err != nil {
		return format.No, err
	}
	first, last := magicVersion(head[:magicLen]), magicVersion(end[:magicLen])
	switch {
	case first != 0 && last != 0:
		return format.Certain, nil
	case first != 0:
		return format.Certain, nil // its end is lost or damaged
	case last != 0 && int64(le32(end[magicLen:])) < size:
		return format.Likely, nil // its beginning is
	case strings.HasSuffix(tg.Name, ".cfile"):
		return format.Maybe, nil
	}
	return format.No, nil
}

// probeStream looks only at the beginning of what cannot be looked at otherwise without reading it all.
func probeStream(ctx context.Context, tg format.Target) (m format.Match, streamed bool, err error) {
	src, err := tg.Tree.Open(ctx, tg.Name)
	if err != nil {
		return format.No, false, err
	}
	defer src.Close()
	if !store.Unsized(src) {
		return format.No, false, nil
	}
	var head [magicLen]byte
	if err := readSome(ctx, src, head[:], tg.At.From); err != nil || magicVersion(head[:]) == 0 {
		return format.No, true, err
	}
	return format.Certain, true, nil
}

// readSome reads all of p; a file that ends early is not an error here.
func readSome(ctx context.Context, src store.Source, p []byte, off int64) error {
	n, err := src.ReadAt(ctx, p, off)
	if n == len(p) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// list tells what the file is.
func list(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		r, err := open(ctx, tg, format.OpenOptions{})
		if info, serr := tg.Tree.Stat(ctx, tg.Name); err != nil && serr == nil && info.Dir && isDamage(err) {
			var rerr error
			if r, _, rerr = recoverTable(ctx, tg, format.OpenOptions{}); rerr == nil {
				err = nil
			}
		}
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		defer r.Close()
		e := format.Entry{Kind: "table", Rows: -1, Meta: r.Meta()}
		for p := range r.Parts(ctx, format.Query{}) {
			e.Rows, e.Bytes = p.Rows, p.Bytes
		}
		for _, m := range e.Meta {
			if m.Key == "kind" {
				e.Kind = m.Value
			}
		}
		yield(e, nil)
	}
}

// open opens a CFile, or a directory of them.
func open(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
	opts, err := parseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	if tg.Table != "" {
		return nil, fault.Invalidf("%s: a CFile has no tables, so not #%s", tg.Name, tg.Table)
	}
	info, err := tg.Tree.Stat(ctx, tg.Name)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil && info.Dir:
		return openDir(ctx, tg, o, opts)
	}
	f, err := openTarget(ctx, tg, o)
	if err != nil {
		return nil, err
	}
	return newTable(ctx, tg, f, opts)
}

// newTable shows an open file as a table, by its kind.
func newTable(ctx context.Context, tg format.Target, f *file, o readOptions) (format.Reader, error) {
	kind := o.kind
	if kind == KindUnknown {
		kind = f.kind()
	}
	if (kind == KindBloom || kind == KindDelta || kind == KindIndex) && f.footer.Type != Binary {
		f.src.Close()
		return nil, fault.Invalidf("%s: a %s holds binary values, this file %s", tg.Name, kind, f.footer.Type)
	}
	t := &side{name: tg.Name, f: f, stamp: stampOf(ctx, tg), meta: f.facts()}
	var err error
	switch {
	case kind == KindBloom:
		err = openBloomTable(t)
	case kind == KindDelta:
		err = openDeltaTable(t)
	case kind == KindIndex && o.key != nil:
		err = openIndexTable(t, o.key)
	case o.key != nil:
		err = fault.Invalidf("%s: option key is for ad-hoc indexes, this is a %s", tg.Name, kind)
	default:
		if kind == KindIndex && o.name == "" {
			o.name = "key"
		}
		return openColumn(ctx, tg, f, o), nil
	}
	if err != nil {
		f.src.Close()
		return nil, err
	}
	return t, nil
}

// factOf is a metadata pair for people.
func (f *file) factOf(m metaPair) string {
	if m.key == fieldKey || m.key == setKey {
		return string(m.value)
	}
	return fmt.Sprintf("%x", m.value)
}
