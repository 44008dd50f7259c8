package redfile

import (
	"context"
	"iter"

	"stoa/fault"
	"stoa/format"
)

// Format is RedFile as the front of stoa sees it.
var Format = format.Format{
	Magics:     []format.Magic{{Off: 0, Bytes: "RED1", Name: "a RedFile"}},
	Name:       "redfile",
	Title:      "RedFile (RED1), 2013: row groups, column chunks, pages; what became Parquet",
	Extensions: []string{".red"},
	Probe:      probe,
	List:       list,
	Open:       open,
	ReadKeys:   readKeys,
	Create:     create,
	Reread:     reread,
	Parted:     true,
	WriteKeys:  writeKeys,
	Describe:   describe,
	Verify:     verify,
	Recover:    recoverFile,
	Unchecked:  unchecked,
	Claims:     claims,
	Codes:      Codes,
}

// list tells what the file is.
func list(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		f, err := openTarget(ctx, tg, format.OpenOptions{Limits: tg.Limits})
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		defer f.Close()
		if err := f.rowsAgree(ctx); err != nil {
			yield(format.Entry{}, err)
			return
		}
		f.lookAround(ctx)
		f.partsBelong(ctx)
		f.contradicts()
		yield(format.Entry{Kind: "RedFile", Rows: f.meta.rows, Bytes: f.at.Len, Meta: f.Meta(),
			Findings: f.missing}, nil)
	}
}

// open opens a RedFile.
func open(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
	if tg.Table != "" {
		return nil, fault.Invalidf("%s: a RedFile has no tables, so not #%s", tg.Name, tg.Table)
	}
	opts, err := parseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	return openWith(ctx, tg, o, opts)
}

func openWith(ctx context.Context, tg format.Target, o format.OpenOptions, opts readOptions) (format.Reader, error) {
	f, err := openTargetWith(ctx, tg, o, opts)
	if err != nil {
		return nil, err
	}
	if opts.schema != "" && f.meta.gen >= GenC {
		f.Close()
		return nil, fault.Invalidf("schema=%s: %s says its schema itself, being of generation %s: only recover takes "+
			"another, where that is lost", opts.schema, tg.Name, f.meta.gen)
	}
	f.lookAround(ctx)
	f.partsBelong(ctx)
	f.contradicts()
	return f, nil
}
