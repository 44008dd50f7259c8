// Package parts checks the files of one table by their names: which are missing, because numbers have gaps or other
// files show that they existed, and which files of backups would be read twice. It opens no table.
package parts

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
	"stoa/internal/sorted"
	"stoa/region"
	"stoa/store"
)

// Wrong returns findings about the files of a table, sorted by file name: dir.part.missing for files that must have
// existed, dir.part.twice and dir.part.other for files of backups whose rows would be read twice, or that do not belong
// to the backup, dir.left.out for files that are not part of their table. In a directory with a manifest, that alone
// says which files there must be; file.unreadable is a damaged one.
func Wrong(ctx context.Context, tree store.Tree, names []string, formats []format.Format) (out []region.Finding) {
	in := map[string][]string{}
	for _, name := range names {
		in[path.Dir(name)] = append(in[path.Dir(name)], name)
	}
	var plain []string // names in directories without a manifest
	for dir, names := range in {
		switch m, err := ReadManifest(ctx, tree, dir); {
		case err != nil:
			out = append(out, unreadable(path.Join(dir, ManifestName), err))
		case m != nil:
			out = append(out, m.wrong(ctx, tree, names)...)
		default:
			plain = append(plain, names...)
		}
	}
	out = append(out, missingOurs(ctx, tree, plain, formats)...)
	out = append(out, missingSpark(ctx, tree, plain)...)
	out = append(out, duplicated(ctx, tree, plain, formats)...)
	sorted.By(out, func(a, b region.Finding) int { return cmp.Compare(a.Part, b.Part) })
	return out
}

func finding(code, name, words string, args ...any) region.Finding {
	return region.Finding{Code: code, Severity: region.Error, At: fault.Span{Object: name}, Part: name,
		Rows: [2]int64{-1, -1}, Message: fmt.Sprintf(words, args...)}
}

func unreadable(name string, err error) region.Finding {
	f, e := finding("file.unreadable", name, "%v", err), new(fault.Error)
	if f.Lost = -1; errors.As(err, &e) {
		f.At, f.Path, f.Message = e.At, e.Path, e.Reason
	}
	return f
}

func missing(name, words string, args ...any) region.Finding {
	f := finding("dir.part.missing", name, words, args...)
	f.Lost = -1
	return f
}

// longestGap is the maximum number of consecutive missing files: a longer gap means that files are numbered in another
// way.
const longestGap = 64

// missingOurs returns findings about gaps in the numbers of files named part-00000.EXT, part-00001.EXT and so on, the
// names of a table that stoa divides. Other systems, which may skip numbers, use longer names. Missing files after the
// last one are not noticed here: some formats record them in the files themselves.
func missingOurs(ctx context.Context, tree store.Tree, names []string, formats []format.Format) (
	out []region.Finding) {

	last := map[[2]string]int{} // by directory and extension
	for _, name := range names {
		base, n, ext := path.Base(name), 0, ""
		if _, err := fmt.Sscanf(base, "part-%05d%s", &n, &ext); err != nil || partName(n, ext) != base ||
			ext[0] != '.' || n > 99_999 {
			continue
		}
		if !numbered(strings.TrimSuffix(base, ".gz"), formats) {
			continue
		}
		key := [2]string{path.Dir(name), ext}
		last[key] = max(last[key], n)
	}
	for key, n := range last {
		var gap []region.Finding
		for i := n - 1; i >= -1; i-- {
			name := path.Join(key[0], partName(i, key[1]))
			if i < 0 || !isMissing(ctx, tree, name) {
				out, gap = append(out, gap...), nil
				continue
			}
			gap = append(gap, missing(name,
				"it is missing, but %s is here: the files of a table are numbered without gaps", partName(n, key[1])))
			if len(gap) > longestGap {
				break
			}
		}
	}
	return out
}

func partName(n int, ext string) string { return fmt.Sprintf("part-%05d%s", n, ext) }

// numbered reports whether a file, by its name, is in a format that does not itself record which files are missing.
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

// isMissing reports whether a file does not exist.
func isMissing(ctx context.Context, tree store.Tree, name string) bool {
	_, err := tree.Stat(ctx, name)
	return errors.Is(err, fs.ErrNotExist)
}
