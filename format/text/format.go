package text

import (
	"context"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/cells"
	"stoa/region"
	"stoa/store"
)

// CSV is comma-separated text (RFC 4180).
var CSV = separated("csv", "comma-separated values", ',')

// TSV is tab-separated text, quoted as CSV is.
var TSV = separated("tsv", "tab-separated values", '\t')

func separated(name, title string, comma byte) format.Format {
	open := func(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader, error) {
		return openCSV(ctx, t, o, name, comma)
	}
	f := format.Format{
		Name: name, Title: title, Extensions: []string{"." + name, "." + name + ".gz"},
		Probe: func(ctx context.Context, t format.Target) (format.Match,
			error) {
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
		WriteKeys: csvWriteKeys,
		ReadKeys:  csvReadKeys,
		Codes:     codesOf(name),
	}
	f.Reread = rereadCSV(f, comma)
	return f
}

// recovering opens for recovery: there is nothing but lines, each of which can be read or not.
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
		WriteKeys: jsonlWriteKeys,
		ReadKeys:  jsonlReadKeys,
		Codes:     codesOf("jsonl"),
	}
	f.Reread = rereadJSONL(f)
	return f
}

// unchecked is format.Format.Unchecked: only what gzip has compressed has a checksum.
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

var csvWriteKeys = []format.OptionKey{
	{Name: "header", Values: "true|false", Help: "whether the first line has the names (default true)"},
	{Name: "delimiter", Values: "C", Help: "what separates fields: an ASCII character, or tab"},
	{Name: "null", Values: "TEXT", Help: "how null is written (default nothing; an empty string is \"\")"},
	gzipKey,
}

var jsonlWriteKeys = []format.OptionKey{gzipKey}

func checkOpts(name string, opts map[string]string, keys []format.OptionKey) error {
next:
	for k := range opts {
		for _, have := range keys {
			if have.Name == k {
				continue next
			}
		}
		return fault.Invalidf("format %s has no option %q", name, k)
	}
	return nil
}

func boolean(opts map[string]string, key string, def bool) (bool, error) {
	switch v := opts[key]; v {
	case "":
		return def, nil
	case "true", "false":
		return v == "true", nil
	default:
		return false, fault.Invalidf("%s=%s: it is true or false", key, v)
	}
}

// delimiterOf reads the option delimiter.
func delimiterOf(opts map[string]string, def byte) (byte, error) {
	switch v := opts["delimiter"]; {
	case v == "":
		return def, nil
	case v == "tab" || v == `\t`:
		return '\t', nil
	case len(v) == 1 && v[0] < 0x80 && v[0] != '"' && v[0] != '\n' && v[0] != '\r':
		return v[0], nil
	default:
		return 0, fault.Invalidf("delimiter=%s: it is one ASCII character (not a quote or the end of a line), or tab",
			v)
	}
}

func createCSV(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions, name string,
	comma byte) (format.Writer, error) {
	if err := checkOpts(name, o.Opts, csvWriteKeys); err != nil {
		return nil, err
	}
	head, err := boolean(o.Opts, "header", true)
	if err != nil {
		return nil, err
	}
	if comma, err = delimiterOf(o.Opts, comma); err != nil {
		return nil, err
	}
	for _, f := range sc.Fields() { // columns are told apart by where they stand, what is in their cells is JSON
		if err := cells.Distinct([]arrow.Field{f}, ""); err != nil {
			return nil, err
		}
	}
	return newFileWriter(ctx, s, o.Opts, func(w io.Writer) rows {
		c := cells.NewCSVWriter(w, sc, rune(comma), head)
		c.Null = o.Opts["null"]
		return c
	})
}

func createJSONL(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer, error) {
	if err := checkOpts("jsonl", o.Opts, jsonlWriteKeys); err != nil {
		return nil, err
	}
	if err := cells.Distinct(sc.Fields(), ""); err != nil {
		return nil, err
	}
	return newFileWriter(ctx, s, o.Opts, func(w io.Writer) rows { return cells.NewJSONLWriter(w, sc) })
}
