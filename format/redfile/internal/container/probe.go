package container

import (
	"context"
	"errors"
	"io"
	"path"
	"strings"

	"stoa/format"
	"stoa/format/redfile/internal/layout"
	"stoa/store"
)

// Probe looks at the magics at both ends.
func Probe(ctx context.Context, tg format.Target) (format.Match, error) {
	if info, err := tg.Tree.Stat(ctx, tg.Name); err == nil && info.Dir {
		if in := InDir(ctx, tg); in.Name != tg.Name {
			return Probe(ctx, in)
		}
		return format.No, nil
	}
	src, base, size, err := openProbe(ctx, tg)
	if err != nil {
		return format.No, err
	}
	defer src.Close()
	var head, end [layout.MagicLen]byte
	if err := readSome(ctx, src, head[:], base); err != nil {
		return format.No, err
	}
	if string(head[:]) == layout.Magic {
		return format.Certain, nil
	}
	if size < layout.MinFile {
		return format.No, nil
	}
	if err := readSome(ctx, src, end[:], base+size-layout.MagicLen); err != nil {
		return format.No, err
	}
	switch {
	case string(end[:]) == layout.Magic:
		return format.Likely, nil // its beginning is damaged
	case strings.HasSuffix(tg.Name, ".red"):
		return format.Maybe, nil
	}
	return format.No, nil
}

// InDir is the file of metadata of a split RedFile, if tg is the directory of one; else tg.
func InDir(ctx context.Context, tg format.Target) format.Target {
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if err != nil || !info.Dir {
		return tg
	}
	name := path.Join(tg.Name, layout.MetadataFile)
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
