package cfile

import (
	"context"
	"iter"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/format/cfile/internal/write"
	"stoa/store"
)

// Format is CFile as the front of stoa sees it.
var Format = format.Format{
	Name: "cfile",
	Title: "Apache Kudu CFile v1 and v2: one column, with bloom, delta and ad-hoc index files; directories of " +
		"them",
	Extensions: []string{".cfile"},
	Owns:       owns,
	Magics: []format.Magic{
		{Off: 0, Bytes: "kuduenc\x00", Name: "an encrypted Kudu file"},
	},
	Probe:     probe,
	List:      list,
	Open:      open,
	Describe:  anatomy,
	Verify:    verify,
	Recover:   recoverTable,
	Unchecked: unchecked,
	Bounds:    true,
	Claims:    claims,
	ReadKeys:  columnfile.ReadTable.Keys(),
	Create:    create,
	Alters:    write.Alters,
	Dictionaries: func(values arrow.DataType) bool {
		return values.ID() == arrow.STRING || values.ID() == arrow.BINARY
	},
	WriteKeys: write.Table.Keys(),
	Codes:     block.Codes,
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
	var head, end [block.Tail]byte
	if size < block.MagicLen {
		return format.No, nil
	}
	n := min(size, block.Tail)
	if _, err := format.ReadSome(ctx, src, head[:n], base); err != nil {
		return format.No, err
	}
	if _, err := format.ReadSome(ctx, src, end[block.Tail-n:], base+size-n); err != nil {
		return format.No, err
	}
	first, last := block.MagicVersion(head[:block.MagicLen]), block.MagicVersion(end[:block.MagicLen])
	switch {
	case first != 0 && last != 0:
		return format.Certain, nil
	case first != 0:
		return format.Certain, nil // the end of the file is lost or damaged
	case last != 0 && int64(block.Le32(end[block.MagicLen:])) < size:
		return format.Likely, nil // the beginning of the file is lost or damaged
	case strings.HasSuffix(tg.Name, ".cfile"):
		return format.Maybe, nil
	}
	return format.No, nil
}

// probeStream looks only at the beginning of a source whose end cannot be reached without reading everything.
func probeStream(ctx context.Context, tg format.Target) (m format.Match, streamed bool, err error) {
	src, err := tg.Tree.Open(ctx, tg.Name)
	if err != nil {
		return format.No, false, err
	}
	defer src.Close()
	if !store.Unsized(src) {
		return format.No, false, nil
	}
	var head [block.MagicLen]byte
	if _, err := format.ReadSome(ctx, src, head[:], tg.At.From); err != nil || block.MagicVersion(head[:]) == 0 {
		return format.No, true, err
	}
	return format.Certain, true, nil
}

// list reports what the file is.
func list(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		r, err := open(ctx, tg, format.OpenOptions{Limits: tg.Limits})
		if info, serr := tg.Tree.Stat(ctx, tg.Name); err != nil && serr == nil && info.Dir && columnfile.IsDamage(err) {
			var rerr error
			if r, _, rerr = recoverTable(ctx, tg, format.OpenOptions{Limits: tg.Limits}); rerr == nil {
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
	opts, err := columnfile.ParseOptions(o.Opts)
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
	if err := f.CheckRows(ctx); err != nil {
		f.Src.Close()
		return nil, err
	}
	return newTable(ctx, tg, f, opts, nil)
}

// newTable makes an open file of any kind a table. blocks are the blocks that recovery found in a damaged file; nil
// means those in its indexes.
func newTable(ctx context.Context, tg format.Target, f *columnfile.File, o columnfile.ReadOptions,
	blocks []columnfile.DataBlock) (format.Reader, error) {
	kind := o.Kind
	if kind == block.KindUnknown {
		kind = f.Kind()
	}
	if (kind == block.KindBloom || kind == block.KindDelta || kind == block.KindIndex) &&
		f.Footer.Type != block.Binary {
		f.Src.Close()
		return nil, fault.Invalidf("%s: a %s holds binary values, this file %s", tg.Name, kind, f.Footer.Type)
	}
	t := &auxiliary{f: f, RowSource: format.RowSource{At: f.At, Stamp: stampOf(ctx, tg), Kind: f.Kind().String(),
		Facts: f.Facts(), Closed: f.Src.Close}}
	var err error
	switch {
	case kind == block.KindBloom:
		err = openBloomTable(t)
	case kind == block.KindDelta:
		err = openDeltaTable(t, blocks)
	case kind == block.KindIndex && o.Key != nil:
		err = openIndexTable(t, o.Key, blocks)
	case o.Key != nil:
		err = fault.Invalidf("%s: option key is for ad-hoc indexes, this is a %s", tg.Name, kind)
	default:
		if kind == block.KindIndex && o.Name == "" {
			o.Name = "key"
		}
		c := openColumn(ctx, tg, f, o)
		c.files[0].found = blocks
		return c, nil
	}
	if blocks != nil && columnfile.IsDamage(err) { // the values can be read nevertheless
		c := openColumn(ctx, tg, f, o)
		c.files[0].found = blocks
		return c, nil
	}
	if err != nil {
		f.Src.Close()
		return nil, err
	}
	return t, nil
}
