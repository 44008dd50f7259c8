package trevni

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
	"stoa/wire"
)

// Format is Trevni as the front of stoa sees it. It reads all three dialects and writes the wiki's.
var Format = format.Format{
	Magics:     []format.Magic{{Off: 0, Bytes: "Trv", Name: "a Trevni file"}},
	Name:       "trevni",
	Title:      "Trevni: the dialects of Apache Avro, Impala (2012) and Nong Li's wiki page; writes the last",
	Extensions: []string{".trv"},
	Probe:      probe,
	List:       list,
	Open:       open,
	ReadKeys:   readKeys,
	Create:     createWiki,
	Reread:     rereadWiki,
	Parted:     true,
	Describe:   describe,
	Unchecked:  unchecked,
	Verify:     verify,
	Recover:    recoverFile,
	UTF8:       true,
	Codes:      Codes,
	WriteKeys:  writeKeys,
}

// AvroFormat writes Apache Avro's dialect. What it reads is told from the file; Format is asked first.
var AvroFormat = format.Format{
	Family:     "trevni",
	Name:       "trevni-avro",
	Title:      "Trevni as Apache Avro reads and writes it",
	Extensions: []string{".trv"},
	Probe:      probeAvro,
	List:       list,
	Open:       open,
	ReadKeys:   readKeys,
	Create:     createAvro,
	Reread:     rereadAvro,
	Parted:     true,
	Describe:   describe,
	Unchecked:  unchecked,
	Verify:     verify,
	Recover:    recoverFile,
	UTF8:       true,
	Codes:      Codes,
	WriteKeys:  avroWriteKeys,
}

// probe looks at the magic, and whether a header of a known dialect follows.
func probe(ctx context.Context, tg format.Target) (format.Match, error) {
	if info, err := tg.Tree.Stat(ctx, tg.Name); err == nil && info.Dir {
		return format.No, nil
	}
	src, err := tg.Tree.Open(ctx, tg.Name)
	if err != nil {
		return format.No, err
	}
	defer src.Close()
	buf := make([]byte, 4<<10)
	n, err := src.ReadAt(ctx, buf, tg.At.From)
	if err != nil && !errors.Is(err, io.EOF) {
		return format.No, err
	}
	more := int64(1) << 40
	if !store.Unsized(src) {
		more = src.Size() - int64(n) - tg.At.From
	}
	c := &cursor{Cursor: wire.NewCursor(buf[:n], fault.Span{Object: tg.Name, Len: int64(n)}, "header"), more: more}
	h := parseHeader(c)
	switch {
	case n < 4 || string(buf[:3]) != magic || buf[3] > 16:
		if strings.HasSuffix(tg.Name, ".trv") {
			return format.Maybe, nil
		}
		return format.No, nil
	case c.Err() != nil && !c.short:
		return format.Likely, nil // it is damaged, or its version is not known
	case c.Err() == nil && h.settle(fault.Span{Object: tg.Name}) != nil:
		return format.Likely, nil
	}
	return format.Certain, nil
}

// probeAvro never wins: both formats read the same files, and the first that is asked is trevni.
func probeAvro(context.Context, format.Target) (format.Match, error) { return format.No, nil }

// list tells what the file is.
func list(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		r, err := open(ctx, tg, format.OpenOptions{Limits: tg.Limits})
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		defer r.Close()
		t := r.(*table)
		yield(format.Entry{Kind: "table", Rows: t.f.header.Rows, Bytes: t.f.at.Len, Meta: slices.Clone(r.Meta()),
			Findings: t.Findings()}, nil)
	}
}

func open(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
	return openKept(ctx, tg, o, nil)
}

// openKept opens a file; kept, if it is not nil, is taken for the schema that it keeps.
func openKept(ctx context.Context, tg format.Target, o format.OpenOptions, kept []byte) (format.Reader, error) {
	opts, err := parseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	if tg.Table != "" {
		return nil, fault.Invalidf("%s: a Trevni file has no tables, so not #%s", tg.Name, tg.Table)
	}
	f, err := openTarget(ctx, tg, o)
	if err != nil {
		return nil, err
	}
	if kept != nil {
		f.header.Meta = append(f.header.Meta, Pair{Key: schemaKey, Value: kept})
	}
	t, err := newTable(ctx, tg, f, opts)
	if err == nil {
		err = f.checkRows(ctx)
	}
	if err != nil {
		f.src.Close()
		return nil, err
	}
	return t, nil
}

// unchecked is format.Format.Unchecked: columns say whether their blocks have checksums.
func unchecked(ctx context.Context, tg format.Target, o format.OpenOptions) (string, error) {
	f, err := openTarget(ctx, tg, o)
	if err != nil {
		return "", err
	}
	defer f.src.Close()
	if len(f.header.Columns) == 0 && f.header.Rows > 0 && !f.header.sealed {
		return "the file has no column, and no checksum is over how many rows it has", ctx.Err()
	}
	var bare []string
	for i := range f.header.Columns {
		if c := &f.header.Columns[i]; !c.summed {
			bare = append(bare, c.Name)
		}
	}
	return format.WithoutSums(len(f.header.Columns), bare), ctx.Err()
}
