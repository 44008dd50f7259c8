package text

import (
	"cmp"
	"context"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/internal/cells"
	"stoa/region"
	"stoa/store"
)

// CSV is comma-separated text (RFC 4180).
var CSV = separated("csv", "comma-separated values", ',')

// TSV is tab-separated text, quoted like CSV.
var TSV = separated("tsv", "tab-separated values", '\t')

func separated(name, title string, comma byte) format.Format {
	open := func(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, error) {
		return openCSV(ctx, t, o, name, comma)
	}
	f := format.Format{
		Name: name, Title: title, Extensions: []string{"." + name, "." + name + ".gz"},
		Probe: func(ctx context.Context, t format.Target) (format.Match, error) {
			return probeCSV(ctx, t, name, comma)
		},
		List: func(ctx context.Context, t format.Target) iter.Seq2[format.Entry, error] { return list(ctx, t, name) },
		Open: open,
		Create: func(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer,
			error) {
			return createCSV(ctx, s, sc, o, name, comma)
		},
		Verify: func(ctx context.Context, t format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
			return verify(ctx, t, o, name, open)
		},
		Recover:   recovering(open),
		UTF8:      true,
		Unchecked: unchecked,
		WriteKeys: csvWriting.Keys(),
		ReadKeys:  csvReading.Keys(),
		Codes:     codesOf(name),
	}
	f.Reread = rereadCSV(f, comma)
	return f
}

// recovering is format.Format.Recover: the same as open, since text has no metadata to recover.
func recovering(open func(context.Context, format.Target, format.OpenOptions) (format.Reader,
	error)) func(context.Context, format.Target, format.OpenOptions) (format.Reader, []region.Finding, error) {
	return func(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, []region.Finding, error) {
		r, err := open(ctx, t, o)
		return r, nil, err
	}
}

// JSONL is JSON lines: one object a line.
var JSONL = jsonl()

func jsonl() format.Format {
	f := format.Format{
		Name:       "jsonl",
		Title:      "JSON lines",
		Extensions: []string{".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"},
		Probe:      probeJSONL,
		List: func(ctx context.Context, t format.Target) iter.Seq2[format.Entry, error] {
			return list(ctx, t, "jsonl")
		},
		Open:   openJSONL,
		Create: createJSONL,
		Verify: func(ctx context.Context, t format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
			return verify(ctx, t, o, "jsonl", openJSONL)
		},
		Recover:   recovering(openJSONL),
		UTF8:      true,
		Unchecked: unchecked,
		WriteKeys: jsonlWriting.Keys(),
		ReadKeys:  jsonlReading.Keys(),
		Codes:     codesOf("jsonl"),
	}
	f.Reread = rereadJSONL(f)
	return f
}

// unchecked is format.Format.Unchecked: only gzip has a checksum.
func unchecked(ctx context.Context, t format.Target, o format.OpenOptions) (string, error) {
	src, _, _, err := t.Open(ctx)
	if err != nil {
		return "", err
	}
	defer src.Close()
	in, err := newInput(ctx, src, t, o.Limits)
	if err != nil || in.gzip {
		return "", err
	}
	return "text has no checksums", nil
}

func createCSV(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions, name string,
	comma byte) (format.Writer, error) {
	opts, err := named(csvWriting, name).Parse(o.Opts)
	if err != nil {
		return nil, err
	}
	comma = cmp.Or(opts.Delimiter, comma)
	for _, f := range sc.Fields() { // columns may share a name, but the members of their cells, which are JSON, may not
		if err := cells.Distinct([]arrow.Field{f}, ""); err != nil {
			return nil, err
		}
	}
	return newFileWriter(ctx, s, opts.Gzip != nil && *opts.Gzip, func(w io.Writer) rows {
		c := cells.NewCSVWriter(w, sc, rune(comma), !opts.NoHeader)
		c.Null = opts.Null
		return c
	})
}

func createJSONL(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer, error) {
	opts, err := jsonlWriting.Parse(o.Opts)
	if err != nil {
		return nil, err
	}
	if err := cells.Distinct(sc.Fields(), ""); err != nil {
		return nil, err
	}
	return newFileWriter(ctx, s, opts.Gzip != nil && *opts.Gzip,
		func(w io.Writer) rows { return cells.NewJSONLWriter(w, sc) })
}
