package cfile

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"strings"

	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/internal/parts"
	"stoa/internal/sorted"
	"stoa/region"
	"stoa/store"
)

// looseFile is a CFile of a directory whose setFile is lost.
type looseFile struct {
	setColumn
	named bool   // the file's metadata has the column's name
	rows  int64  // -1: it cannot be opened
	set   string // id of its set; "" if it has none
}

// wellNamed reports whether the file's metadata has the column's name and the file is named as our writer would name
// it.
func (f looseFile) wellNamed() bool {
	base, _, _ := strings.Cut(f.File, "~")
	return f.named && strings.TrimSuffix(base, ".cfile") == safeName(f.Path)
}

// looseFiles returns the CFiles of a directory, sorted by column name, which is the name in the metadata or else the
// unescaped file name. The limits apply to each file separately. Of two files with the same column name a wellNamed one
// comes first.
func looseFiles(ctx context.Context, tg format.Target, l format.Limits) (out []looseFile, err error) {
	for info, err := range tg.Tree.List(ctx, tg.Name) {
		if err != nil {
			return nil, err
		}
		base, isCFile := strings.CutSuffix(path.Base(info.Name), ".cfile")
		if info.Dir || !isCFile {
			continue
		}
		x := looseFile{setColumn{Path: columnByFile(base), File: path.Base(info.Name)}, false, -1, ""}
		f, err := openTarget(ctx, format.Target{Tree: tg.Tree, Name: info.Name}, format.OpenOptions{Limits: l.Apart()})
		if err == nil {
			x.rows = f.Footer.NumValues
			if s, _ := f.Footer.Stored(); s.Name != "" {
				x.Path, x.named, x.Holds = s.Name, true, s.Holds
			}
			id, _ := f.Footer.Get(block.SetKey)
			x.set = string(id)
			f.Src.Close()
		}
		out = append(out, x)
	}
	sorted.By(out, func(a, b looseFile) int {
		if c := cmp.Compare(a.Path, b.Path); c != 0 || a.wellNamed() == b.wellNamed() {
			return cmp.Or(c, cmp.Compare(a.File, b.File))
		}
		if a.wellNamed() {
			return -1
		}
		return 1
	})
	return out, ctx.Err()
}

// columnByFile returns the column after which our writer names a file.
func columnByFile(file string) string {
	base := strings.TrimSuffix(file, ".cfile")
	if name, err := url.PathUnescape(base); err == nil {
		return name
	}
	return base
}

// unread returns findings about the CFiles in the directory of a table that are not among its columns.
func (t *fileSet) unread(ctx context.Context, tg format.Target, l format.Limits) []region.Finding {
	known := map[string]bool{setFile: true}
	for _, c := range t.Columns {
		known[c.File] = true
	}
	return parts.Unread(ctx, tg.Tree, tg.Name, func(base string) bool { return known[base] },
		func(ctx context.Context, info store.Info) string {
			return held(ctx, format.Target{Tree: tg.Tree, Name: info.Name}, l)
		})
}

// held says what a file holds if it is a CFile, whole or damaged; "" if it is none. One that is named as a CFile counts
// even if neither of its ends is intact.
func held(ctx context.Context, tg format.Target, l format.Limits) string {
	f, err := openTarget(ctx, tg, format.OpenOptions{Limits: l.Apart()})
	if err != nil && !strings.HasSuffix(tg.Name, ".cfile") && !beginsAsCFile(ctx, tg) {
		return ""
	}
	if err != nil {
		return "a CFile that cannot be opened"
	}
	defer f.Src.Close()
	if s, _ := f.Footer.Stored(); s.Name != "" {
		return fmt.Sprintf("a CFile with %d values of a column %q", f.Footer.NumValues, s.Name)
	}
	return fmt.Sprintf("a CFile with %d values", f.Footer.NumValues)
}

func beginsAsCFile(ctx context.Context, tg format.Target) bool {
	src, err := tg.Tree.Open(ctx, tg.Name)
	if err != nil {
		return false
	}
	defer src.Close()
	var head [block.MagicLen]byte
	_, err = format.ReadSome(ctx, src, head[:], 0)
	return err == nil && block.MagicVersion(head[:]) != 0
}
