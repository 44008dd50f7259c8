package trevni

import (
	"context"
	"iter"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/container"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/table"
	"stoa/format/trevni/internal/write"
	"stoa/store"
	"stoa/wire"
)

// Format is Trevni as package stoa sees it. It reads all three dialects and writes the wiki's.
var Format = format.Format{
	Magics:     []format.Magic{{Off: 0, Bytes: "Trv", Name: "a Trevni file"}},
	Name:       "trevni",
	Title:      "Trevni: the dialects of Apache Avro, Impala (2012) and Nong Li's wiki page; writes the last",
	Extensions: []string{".trv"},
	Probe:      probe,
	List:       list,
	Open:       open,
	ReadKeys:   table.ReadTable.Keys(),
	Create:     write.CreateWiki,
	Reread:     rereadWiki,
	Parted:     true,
	Describe:   anatomy,
	Unchecked:  unchecked,
	Verify:     verify,
	Recover:    recoverFile,
	UTF8:       true,
	Codes:      layout.Codes,
	WriteKeys:  write.Table.Keys(),
}

// AvroFormat writes Apache Avro's dialect. Like Format it reads all dialects, but Format is tried first.
var AvroFormat = format.Format{
	Family:     "trevni",
	Name:       "trevni-avro",
	Title:      "Trevni as Apache Avro reads and writes it",
	Extensions: []string{".trv"},
	Probe:      probeAvro,
	List:       list,
	Open:       open,
	ReadKeys:   table.ReadTable.Keys(),
	Create:     write.CreateAvro,
	Reread:     rereadAvro,
	Parted:     true,
	Describe:   anatomy,
	Unchecked:  unchecked,
	Verify:     verify,
	Recover:    recoverFile,
	UTF8:       true,
	Codes:      layout.Codes,
	WriteKeys:  write.AvroTable.Keys(),
}

// probe checks the magic, and whether a header of a known dialect follows.
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
	n, err := format.ReadSome(ctx, src, buf, tg.At.From)
	if err != nil {
		return format.No, err
	}
	more := int64(1) << 40
	if !store.Unsized(src) {
		more = src.Size() - int64(n) - tg.At.From
	}
	c := &layout.Cursor{Cursor: wire.NewCursor(buf[:n], fault.Span{Object: tg.Name, Len: int64(n)}, "header"),
		More: more}
	h := layout.ParseHeader(c)
	switch {
	case n < 4 || string(buf[:3]) != layout.Magic || buf[3] > 16:
		if strings.HasSuffix(tg.Name, ".trv") {
			return format.Maybe, nil
		}
		return format.No, nil
	case c.Err() != nil && !c.Short:
		return format.Likely, nil // the header is damaged, or its version is unknown
	case c.Err() == nil && h.Resolve(fault.Span{Object: tg.Name}) != nil:
		return format.Likely, nil
	}
	return format.Certain, nil
}

// probeAvro claims no file: both formats read the same files, and Format is tried first.
func probeAvro(context.Context, format.Target) (format.Match, error) { return format.No, nil }

// list lists the file.
func list(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		r, err := open(ctx, tg, format.OpenOptions{Limits: tg.Limits})
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		defer r.Close()
		t := r.(*table.Table)
		yield(format.Entry{Kind: "table", Rows: t.File.Header.Rows, Bytes: t.File.At.Len, Meta: slices.Clone(r.Meta()),
			Findings: t.Findings()}, nil)
	}
}

func open(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
	return openWithSchema(ctx, tg, o, nil)
}

// openWithSchema opens a file. arrowSchema, if it is not nil, replaces the Arrow schema in the file's metadata.
func openWithSchema(ctx context.Context, tg format.Target, o format.OpenOptions,
	arrowSchema []byte) (format.Reader, error) {
	opts, err := table.ParseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	if tg.Table != "" {
		return nil, fault.Invalidf("%s: a Trevni file has no tables, so not #%s", tg.Name, tg.Table)
	}
	f, err := container.OpenTarget(ctx, tg, o)
	if err != nil {
		return nil, err
	}
	if arrowSchema != nil {
		f.Header.Meta = append(f.Header.Meta, layout.Pair{Key: layout.SchemaKey, Value: arrowSchema})
	}
	t, err := table.New(ctx, tg, f, opts)
	if err == nil {
		err = f.CheckRows(ctx)
	}
	if err == nil && !o.NoVerify {
		err = t.CheckCut(ctx)
	}
	if err != nil {
		f.Src.Close()
		return nil, err
	}
	return t, nil
}

// unchecked implements format.Format.Unchecked. The metadata of columns declares whether their blocks have checksums.
// The format has none for its header; our writer adds one.
func unchecked(ctx context.Context, tg format.Target, o format.OpenOptions) (string, error) {
	f, err := container.OpenTarget(ctx, tg, o)
	if err != nil {
		return "", err
	}
	defer f.Src.Close()
	if len(f.Header.Columns) == 0 && f.Header.Rows > 0 && !f.Header.Sealed {
		return "the file has no column, and no checksum is over how many rows it has", ctx.Err()
	}
	var withoutSums []string
	for i := range f.Header.Columns {
		if c := &f.Header.Columns[i]; !c.Summed {
			withoutSums = append(withoutSums, c.Name)
		}
	}
	if len(withoutSums) == 0 && !f.Header.Sealed {
		return "no checksum is over the header, which has the names of the columns", ctx.Err()
	}
	return format.WithoutSums(len(f.Header.Columns), withoutSums), ctx.Err()
}
