package stoa

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// longestGap is how many files in a row may be missing: files with a longer gap are numbered in some other way.
const longestGap = 64

// missingParts are the gaps in the numbers of files that are called part-00000.EXT, part-00001.EXT and so on, as stoa
// calls those of a table that it divides. Other systems put more into the names, since they may leave numbers out.
// Only numbers below one that is there can be missed: a format whose files know more tells it itself.
func missingParts(ctx context.Context, tree store.Tree, names []string, o OpenOptions) (out []leftOut) {
	last := map[[2]string]int{} // by directory and ending
	for _, name := range names {
		base, n, ext := path.Base(name), 0, ""
		if _, err := fmt.Sscanf(base, "part-%05d%s", &n, &ext); err != nil || partName(n, ext) != base ||
			ext[0] != '.' || n > 99_999 {
			continue
		}
		if !numbered(strings.TrimSuffix(base, ".gz"), o.formats()) {
			continue
		}
		key := [2]string{path.Dir(name), ext}
		last[key] = max(last[key], n)
	}
	for key, n := range last {
		var gap []leftOut
		for i := n - 1; i >= -1; i-- {
			name := path.Join(key[0], partName(i, key[1]))
			if i < 0 || !lacks(ctx, tree, name) {
				out, gap = append(out, gap...), nil
				continue
			}
			f := region.Finding{Code: "dir.part.missing", Severity: region.Error, At: fault.Span{Object: name},
				Part: name, Rows: [2]int64{-1, -1}, Lost: -1,
				Message: fmt.Sprintf("it is not there, but %s is: the files of a table are numbered without gaps",
					partName(n, key[1]))}
			if gap = append(gap, leftOut{name, fault.Corruptf(f.At, "", "%s", f.Message), &f}); len(gap) > longestGap {
				break
			}
		}
	}
	slices.SortFunc(out, func(a, b leftOut) int { return cmp.Compare(a.name, b.name) })
	return out
}

func partName(n int, ext string) string { return fmt.Sprintf("part-%05d%s", n, ext) }

// numbered reports whether a file is, by its name, of a format that does not tell itself what is missing beside it.
func numbered(base string, formats []format.Format) (yes bool) {
	for _, f := range formats {
		if slices.ContainsFunc(f.Extensions, func(ext string) bool { return strings.HasSuffix(base, ext) }) {
			if yes = true; f.Parted {
				return false
			}
		}
	}
	return yes
}

func lacks(ctx context.Context, tree store.Tree, name string) bool {
	_, err := tree.Stat(ctx, name)
	return errors.Is(err, fs.ErrNotExist)
}
