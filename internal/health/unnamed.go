package health

import (
	"context"
	"fmt"
	"path"
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
	for _, files := range left {
		out = append(out, files...)
	}
	if !known {
		return nil, nil
	}
	sorted.By(out, func(a, b store.Info) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
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

// candidates adds to left the files below a directory of the table that may be such files, by their base names.
func candidates(ctx context.Context, tg format.Target, dir string, left map[string][]store.Info) error {
	var below []string
	for info, err := range tg.Tree.List(ctx, path.Join(tg.Name, dir)) {
		if err != nil {
			return err
		}
		base := path.Base(info.Name)
		rel := path.Join(dir, base)
		random, unfinished := strings.CutPrefix(base, store.TempPrefix)
		_, of, _ := strings.Cut(random, "-")
		switch {
		case unfinished && (dir != "" || store.TableFile(of)) && !store.Replaced(base),
			!info.Dir && store.TableFile(rel):
			left[base] = append(left[base], info)
		case info.Dir && (dir == "" && (base == "data" || base == "metadata") || strings.Contains(base, "=")):
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
