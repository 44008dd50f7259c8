package redfile

import (
	"context"
	"iter"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/recovery"
	"stoa/format/redfile/internal/table"
	"stoa/format/redfile/internal/write"
)

// Format is RedFile as package stoa sees it.
var Format = format.Format{
	Magics:     []format.Magic{{Off: 0, Bytes: "RED1", Name: "a RedFile"}},
	Name:       "redfile",
	Title:      "RedFile (RED1), 2013: row groups, column chunks, pages; what became Parquet",
	Extensions: []string{".red"},
	Probe:      container.Probe,
	List:       list,
	Open:       open,
	ReadKeys:   layout.ReadTable.Keys(),
	Create:     write.Create,
	Reread:     reread,
	Parted:     true,
	WriteKeys:  write.Table.Keys(),
	Describe:   anatomy,
	Verify:     verify,
	Recover:    recovery.Recover,
	Unchecked:  unchecked,
	Bounds:     true,
	Claims:     claims,
	Codes:      layout.Codes,
}

// list lists the file.
func list(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		f, err := table.OpenTarget(ctx, tg, format.OpenOptions{Limits: tg.Limits})
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		defer f.Close()
		if err := f.RowsAgree(ctx); err != nil {
			yield(format.Entry{}, err)
			return
		}
		f.CheckTable(ctx)
		f.CheckParts(ctx)
		f.CheckChunks()
		yield(format.Entry{Kind: "RedFile", Rows: f.Footer.Rows, Bytes: f.At.Len, Meta: f.Meta(),
			Findings: f.Reported}, nil)
	}
}

// open opens a RedFile.
func open(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, error) {
	if tg.Table != "" {
		return nil, fault.Invalidf("%s: a RedFile has no tables, so not #%s", tg.Name, tg.Table)
	}
	opts, err := layout.ParseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	return openWith(ctx, tg, o, opts)
}

func openWith(ctx context.Context, tg format.Target, o format.OpenOptions,
	opts layout.ReadOptions) (format.Reader, error) {
	f, err := table.OpenTargetWith(ctx, tg, o, opts)
	if err != nil {
		return nil, err
	}
	if opts.Schema != "" && f.Footer.Gen >= layout.GenC {
		f.Close()
		return nil, fault.Invalidf("schema=%s: %s says its schema itself, being of generation %s: only recover takes "+
			"another, where that is lost", opts.Schema, tg.Name, f.Footer.Gen)
	}
	f.CheckTable(ctx)
	f.CheckParts(ctx)
	f.CheckChunks()
	return f, nil
}
