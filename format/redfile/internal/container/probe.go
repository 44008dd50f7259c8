package container

import (
	"context"
	"path"
	"strings"

	"stoa/format"
	"stoa/format/redfile/internal/layout"
	"stoa/store"
)

// Probe recognizes a RedFile by the magic at either end or by its name, and the directory of a split table by its
// metadata file.
func Probe(ctx context.Context, tg format.Target) (format.Match, error) {
	if info, err := tg.Tree.Stat(ctx, tg.Name); err == nil && info.Dir {
		if in := InDir(ctx, tg); in.Name != tg.Name {
			m, err := Probe(ctx, in)
			if err != nil && ctx.Err() == nil {
				return format.Likely, nil // by its name: without it, the parts would pass for tables of their own
			}
			return m, err
		}
		return format.No, nil
	}
	src, base, size, err := openProbe(ctx, tg)
	if err != nil {
		return format.No, err
	}
	defer src.Close()
	var head, end [layout.MagicLen]byte
	if _, err := format.ReadSome(ctx, src, head[:], base); err != nil {
		return format.No, err
	}
	if string(head[:]) == layout.Magic {
		return format.Certain, nil
	}
	if size < layout.MinFile {
		return format.No, nil
	}
	if _, err := format.ReadSome(ctx, src, end[:], base+size-layout.MagicLen); err != nil {
		return format.No, err
	}
	switch {
	case string(end[:]) == layout.Magic:
		return format.Likely, nil // the beginning of the file is damaged
	case strings.HasSuffix(tg.Name, ".red"):
		return format.Maybe, nil
	}
	return format.No, nil
}

// InDir returns the metadata file of a split table if tg is its directory, and tg otherwise.
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

// openProbe opens tg without asking for the size of a stream, which would have to be read to the end.
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
