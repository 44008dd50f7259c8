package redfile

import (
	"context"
	"errors"
	"io"
	"iter"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
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

// probe looks at the magics at both ends.
func probe(ctx context.Context, tg format.Target) (format.Match, error) {
	if info, err := tg.Tree.Stat(ctx, tg.Name); err == nil && info.Dir {
		if in := inDir(ctx, tg); in.Name != tg.Name {
			return probe(ctx, in)
		}
		return format.No, nil
	}
	src, base, size, err := openProbe(ctx, tg)
	if err != nil {
		return format.No, err
	}
	defer src.Close()
	var head, end [magicLen]byte
	if err := readSome(ctx, src, head[:], base); err != nil {
		return format.No, err
	}
	if string(head[:]) == magic {
		return format.Certain, nil
	}
	if size < minFile {
		return format.No, nil
	}
	if err := readSome(ctx, src, end[:], base+size-magicLen); err != nil {
		return format.No, err
	}
	switch {
	case string(end[:]) == magic:
		return format.Likely, nil // its beginning is damaged
	case strings.HasSuffix(tg.Name, ".red"):
		return format.Maybe, nil
	}
	return format.No, nil
}

// inDir is the file of metadata of a split RedFile, if tg is the directory of one; else tg.
func inDir(ctx context.Context, tg format.Target) format.Target {
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if err != nil || !info.Dir {
		return tg
	}
	name := path.Join(tg.Name, metadataFile)
	if info, err := tg.Tree.Stat(ctx, name); err == nil && !info.Dir {
		tg.Name = name
	}
	return tg
}

// openProbe does not ask a stream for its size.
func openProbe(ctx context.Context, tg format.Target) (src store.Source, base, size int64, err error) {
	if src, err = tg.Tree.Open(ctx, tg.Name); err != nil {
		return nil, 0, 0, err
	}
	if store.Unsized(src) {
		return src, tg.At.From, 0, nil
	}
	src.Close()
	return tg.Open(ctx)
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
