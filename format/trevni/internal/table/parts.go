package table

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/container"
	"stoa/format/trevni/internal/layout"
	"stoa/internal/check"
)

// Our writer divides a large table into files part-00000.trv, part-00001.trv and so on. The metadata of each part
// contains its number, the checksum of the header of the previous part, and whether it is the last. So a missing or
// replaced part is revealed by its neighbours.

// PartName is the name of part n.
func PartName(n int) string { return fmt.Sprintf("part-%05d.trv", n) }

// PartOf is the metadata of a part about itself.
type PartOf struct {
	Number int
	After  string // checksum of the header of the previous part; "": this is the first
	Last   bool
}

// Text is the form in the metadata: "0", "3 after 9f2c11aa", "4 after 00c1ffee, last".
func (p PartOf) Text() []byte {
	s := fmt.Sprint(p.Number)
	if p.After != "" {
		s += " after " + p.After
	}
	if p.Last {
		s += ", last"
	}
	return []byte(s)
}

// partIn returns the metadata of a part; ok is false if there is none that can be parsed.
func partIn(h *layout.Header) (p PartOf, ok bool) {
	text, ok := layout.Get(h.Meta, layout.PartKey)
	if !ok {
		return p, false
	}
	s, last := strings.CutSuffix(string(text), ", last")
	number, after, _ := strings.Cut(s, " after ")
	if _, err := fmt.Sscanf(number, "%d", &p.Number); err != nil || p.Number < 0 {
		return p, false
	}
	p.After, p.Last = after, last
	return p, string(p.Text()) == string(text)
}

// checkSiblings reports whether the previous and the next part are missing or were not written together with this
// one. A file with another name is a user's copy: it can be read alone, but next to the original its rows would be
// there twice.
func (t *Table) checkSiblings(ctx context.Context, tg format.Target) {
	h := &t.File.Header
	dir, name := path.Split(tg.Name)
	r := check.Collect(ctx, t.name, layout.Codes, &t.PartFindings)
	report := func(code, format string, args ...any) {
		at, ok := t.keyAt(layout.PartKey)
		if !ok {
			at = t.File.At.Sub(0, h.Size)
		}
		r.Report(code, at, "file-metadata", format, args...)
	}
	n := -1
	fmt.Sscanf(name, "part-%05d.trv", &n)
	seal, _ := layout.Get(h.Meta, layout.SealKey)
	p, ok := partIn(h)
	switch text, kept := layout.Get(h.Meta, layout.PartKey); {
	case !kept || tg.Tree == nil || t.File.NoVerify:
		return
	case PartName(n) != name:
		twin := PartName(p.Number)
		if q, other, is := t.sibling(ctx, tg, path.Join(dir, twin)); ok && is && q == p && other == string(seal) {
			report("trevni.part.repeated", "it was written as %s, which is there, too: its rows are there twice", twin)
		}
		return
	case !ok:
		report("trevni.part.other", "expected the number of a part in %s, found %q", layout.PartKey, text)
		return
	case p.Number != n:
		report("trevni.part.other", "it was written as %s, and is in the place of %s", PartName(p.Number), name)
		return
	}
	if next := path.Join(dir, PartName(n+1)); p.Last {
	} else if missing(ctx, tg, next) {
		report("trevni.part.missing", "it is not the last of its table, and %s is missing", PartName(n+1))
	} else if q, _, ok := t.sibling(ctx, tg, next); ok && q.Number == n+1 && q.After != string(seal) {
		report("trevni.part.other", "%s was written after a file whose header has the checksum %q, and this one has "+
			"%q: one of the two is of another table, or older", PartName(n+1), q.After, seal)
	}
	if p.After == "" {
		return
	}
	before := path.Join(dir, PartName(n-1))
	if missing(ctx, tg, before) {
		report("trevni.part.missing", "%s, before it, is missing", PartName(n-1))
	} else if _, seal, ok := t.sibling(ctx, tg, before); ok && seal != p.After {
		report("trevni.part.other", "the header of %s has the checksum %q; the file that was before it when it was "+
			"written had %q: one of the two is of another table, or older", PartName(n-1), seal, p.After)
	}
}

// sibling returns the PartOf of another file and the checksum of its header. ok is false if the file cannot be opened,
// which is reported when it is read.
func (t *Table) sibling(ctx context.Context, tg format.Target, name string) (p PartOf, seal string, ok bool) {
	f, err := container.OpenTarget(ctx, format.Target{Tree: tg.Tree, Name: name},
		format.OpenOptions{Limits: t.File.Limits})
	if err != nil {
		return p, "", false
	}
	defer f.Src.Close()
	text, _ := layout.Get(f.Header.Meta, layout.SealKey)
	p, _ = partIn(&f.Header)
	return p, string(text), true
}

func missing(ctx context.Context, tg format.Target, name string) bool {
	info, err := tg.Tree.Stat(ctx, name)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Dir
}

// keyAt returns the span of a key in the file's metadata.
func (t *Table) keyAt(key string) (at fault.Span, ok bool) {
	for _, p := range t.File.Header.Meta {
		if p.Key == key {
			at, ok = p.At, true
		}
	}
	return at, ok
}
