package parts

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// backup is a directory with the metadata of a backup, and the files in it that are read. These must belong to one
// backup of one table and have been written by one job, and no key may be in two of them.
type backup struct {
	dir   string
	files []string
	tree  store.Tree
}

// duplicated returns findings about files of backups whose rows would be read twice, or that do not belong to the
// backup: copies under other names, files of other jobs, and files of other backups.
func duplicated(ctx context.Context, tree store.Tree, names []string, formats []format.Format) (out []region.Finding) {
	dirs := backupsOf(ctx, tree, names, formats)
	for i, b := range dirs {
		if i > 0 {
			out = append(out, finding("dir.part.other", b.files[0], "it belongs to another backup than %s: "+
				"rows that are in both are read twice, and rows that were deleted between the two are read",
				dirs[0].files[0]))
		}
		out = append(out, b.copies(ctx)...)
		out = append(out, b.otherJobs()...)
	}
	return out
}

// backupsOf returns the backups in which names are, sorted by directory.
func backupsOf(ctx context.Context, tree store.Tree, names []string, formats []format.Format) (out []*backup) {
	var metadata []string
	for _, f := range formats {
		if f.BackupMetadata != "" {
			metadata = append(metadata, f.BackupMetadata)
		}
	}
	isBackup := func(dir string) bool {
		return slices.ContainsFunc(metadata, func(m string) bool {
			_, err := tree.Stat(ctx, path.Join(dir, m))
			return err == nil
		})
	}
	seen := map[string]*backup{}
	for _, name := range slices.Sorted(slices.Values(names)) {
		dir := path.Dir(name)
		b, known := seen[dir]
		if !known {
			if isBackup(dir) {
				b = &backup{dir: dir, tree: tree}
				out = append(out, b)
			}
			seen[dir] = b
		}
		if b != nil {
			b.files = append(b.files, name)
		}
	}
	return slices.DeleteFunc(out, func(b *backup) bool { return len(b.files) == 0 })
}

// copies returns findings about files with the same bytes as another.
func (b *backup) copies(ctx context.Context) (out []region.Finding) {
	bySize := map[int64][]string{}
	for _, name := range b.files {
		info, err := b.tree.Stat(ctx, name)
		if err != nil || info.Dir || info.Size == 0 {
			continue
		}
		for _, first := range bySize[info.Size] {
			if same(ctx, b.tree, first, name, info.Size) {
				out = append(out, finding("dir.part.twice", name,
					"it has the same bytes as %s: its rows are read twice", first))
				break
			}
		}
		bySize[info.Size] = append(bySize[info.Size], name)
	}
	return out
}

// same reports whether two files of a given size have the same bytes; false if one cannot be read, which is reported
// when it is read.
func same(ctx context.Context, tree store.Tree, a, b string, size int64) bool {
	x, err := tree.Open(ctx, a)
	if err != nil {
		return false
	}
	defer x.Close()
	y, err := tree.Open(ctx, b)
	if err != nil {
		return false
	}
	defer y.Close()
	const window = 64 << 10
	var p, q [window]byte
	for at := size; at > 0; { // from the end, because the footers of different files differ
		n := min(at, window)
		at -= n
		read := func(src store.Source, b []byte) bool {
			k, err := src.ReadAt(ctx, b, at)
			return k == len(b) && (err == nil || errors.Is(err, io.EOF))
		}
		if !read(x, p[:n]) || !read(y, q[:n]) || !bytes.Equal(p[:n], q[:n]) {
			return false
		}
	}
	return true
}

// otherJobs returns findings about files of Spark jobs other than the one that wrote most of the files.
func (b *backup) otherJobs() (out []region.Finding) {
	jobOf := func(name string) string {
		if m := sparkPart.FindStringSubmatch(path.Base(name)); m != nil {
			return strings.SplitN(path.Base(name), "-", 3)[2][:len("00000000-0000-0000-0000-000000000000")]
		}
		return ""
	}
	jobs := map[string]int{}
	first := ""
	for _, name := range b.files {
		if j := jobOf(name); j != "" {
			if jobs[j]++; first == "" || jobs[j] > jobs[first] {
				first = j
			}
		}
	}
	for _, name := range b.files {
		if j := jobOf(name); j != "" && j != first {
			out = append(out, finding("dir.part.other", name, "by its name it was written by another job than the "+
				"other files of the backup (%s)", first))
		}
	}
	return out
}
