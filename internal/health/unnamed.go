package health

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/check"
	"stoa/internal/sorted"
	"stoa/region"
	"stoa/store"
)

// Unnamed returns the files in the directory of a table that have names that stoa gives the files of a new snapshot or
// version, but that no catalogue in the directory refers to, in any state of the table that can be read: what runs have
// left that were killed before they committed, or what a running one has not committed yet. It is an error if a
// catalogue cannot be read as a whole: any file may be in it.
func Unnamed(ctx context.Context, formats []format.Format, tg format.Target, o format.OpenOptions) (out []store.Info,
	err error) {
	left := map[string][]store.Info{}
	// These are listed first: what is committed meanwhile is then named.
	if err := candidates(ctx, tg, "", left); err != nil || len(left) == 0 {
		return nil, err
	}
	known := false
	for i := range formats {
		f := &formats[i]
		if f.Refers == nil {
			continue
		}
		if m, err := f.Probe(ctx, tg); err != nil {
			return nil, err
		} else if m == format.No {
			continue
		}
		known = true
		if err := f.Refers(ctx, tg, o, left); err != nil {
			return nil, err
		}
	}
	if !known || len(left) == 0 {
		return nil, nil
	}
	if err := within(ctx, formats, tg); err != nil {
		return nil, err
	}
	for base, files := range left {
		for _, info := range files {
			if ours, err := strings.HasPrefix(base, store.TempPrefix), error(nil); !ours {
				if ours, err = marked(ctx, tg.Tree, info.Name); err != nil {
					return nil, err
				} else if !ours {
					continue
				}
			}
			out = append(out, info)
		}
	}
	sorted.By(out, func(a, b store.Info) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// within returns Unsupported if a directory lies in that of another table with a catalogue, which may have its files.
func within(ctx context.Context, formats []format.Format, tg format.Target) error {
	for dir := path.Dir(tg.Name); dir != path.Dir(dir); dir = path.Dir(dir) {
		for i := range formats {
			f := &formats[i]
			if f.Refers == nil {
				continue
			}
			if m, err := f.Probe(ctx, format.Target{Tree: tg.Tree, Name: dir}); err == nil && m != format.No {
				return fault.Unsupportedf(fault.Span{Object: tg.Name}, "", "it lies within the table %s of %s, which "+
					"may have files in it", dir, f.Name)
			}
		}
	}
	return nil
}

// marks are what the files of stoa have in their first or last bytes: Parquet, Avro, Puffin.
var marks = [][]byte{[]byte("stoa version "), []byte("created-by\x08stoa"), []byte(`"created-by":"stoa"`)}

// marked reports whether a file says that stoa has written it.
func marked(ctx context.Context, tree store.Tree, name string) (ok bool, err error) {
	src, err := tree.Open(ctx, name)
	if err != nil {
		return false, err
	}
	defer src.Close()
	b := make([]byte, min(64<<10, src.Size()))
	for _, off := range []int64{0, src.Size() - int64(len(b))} {
		if _, err := src.ReadAt(ctx, b, off); err != nil && err != io.EOF {
			return false, err
		}
		for _, m := range marks {
			ok = ok || bytes.Contains(b, m)
		}
	}
	return ok, nil
}

// Leftovers returns a finding about what killed runs have left in the directory of a table with a catalogue. What
// cannot be read has been reported by the verification.
func Leftovers(ctx context.Context, formats []format.Format, tg format.Target, o format.OpenOptions) (
	f region.Finding, found bool) {
	files, err := Unnamed(ctx, formats, tg, o)
	if err != nil || len(files) == 0 {
		return f, false
	}
	bytes := int64(0)
	for _, f := range files {
		bytes += f.Size
	}
	text := fmt.Sprintf("%s of %s that no snapshot or version has: an interrupted run of stoa has left them, or a "+
		"running one has not committed them; stoa clean --dry-run on the table lists them",
		fault.Count(int64(len(files)), "file"), fault.Count(bytes, "byte"))
	return check.Codes(check.FrontCodes).Finding("dir.leftover", fault.Span{Object: files[0].Name}, tg.Name, text), true
}

// candidates adds to left the files below a directory of the table that may be such files, by their base names. What is
// in a directory with a catalogue of its own is another table's.
func candidates(ctx context.Context, tg format.Target, dir string, left map[string][]store.Info) error {
	var below []string
	var all []store.Info
	for info, err := range tg.Tree.List(ctx, path.Join(tg.Name, dir)) {
		if err != nil {
			return err
		}
		base := path.Base(info.Name)
		if dir != "" && info.Dir && (base == "metadata" || base == "_delta_log") {
			return nil
		}
		all = append(all, info)
	}
	for _, info := range all {
		base := path.Base(info.Name)
		rel := path.Join(dir, base)
		random, unfinished := strings.CutPrefix(base, store.TempPrefix)
		_, of, _ := strings.Cut(random, "-")
		switch {
		case unfinished && (dir != "" || store.TableFile(of)) && !store.Replaced(base),
			!info.Dir && store.TableFile(rel):
			left[base] = append(left[base], info)
		case info.Dir && (strings.Contains(base, "=") ||
			dir == "" && slices.Contains([]string{"data", "metadata", "_delta_log"}, base)):
			below = append(below, rel)
		}
	}
	for _, rel := range below {
		if err := candidates(ctx, tg, rel, left); err != nil {
			return err
		}
	}
	return nil
}
