package trevni

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/check"
)

// A table that our writer divides is part-00000.trv, part-00001.trv and so on, and each says in its metadata which
// it is, which header the one before it has, and whether it is the last: so one that is gone, or stands in the place
// of another, is missed by those beside it.

func partName(n int) string { return fmt.Sprintf("part-%05d.trv", n) }

// partOf is what a part says of itself.
type partOf struct {
	number int
	after  string // the checksum of the header of the one before; "" = it is the first
	last   bool
}

// text is what the metadata has: "0", "3 after 9f2c11aa", "4 after 00c1ffee, last".
func (p partOf) text() []byte {
	s := fmt.Sprint(p.number)
	if p.after != "" {
		s += " after " + p.after
	}
	if p.last {
		s += ", last"
	}
	return []byte(s)
}

// partIn is what a file says of being one of several; ok is false if it says nothing, or nothing that can be
// understood.
func partIn(h *Header) (p partOf, ok bool) {
	text, ok := get(h.Meta, partKey)
	if !ok {
		return p, false
	}
	s, last := strings.CutSuffix(string(text), ", last")
	number, after, _ := strings.Cut(s, " after ")
	if _, err := fmt.Sscanf(number, "%d", &p.number); err != nil || p.number < 0 {
		return p, false
	}
	p.after, p.last = after, last
	return p, string(p.text()) == string(text)
}

// lookAround notes which of the files beside a part are missing, or are not those that were written with it. A file
// of another name is somebody's copy: alone it is read, but beside the part that it is its rows would come twice.
func (t *table) lookAround(ctx context.Context, tg format.Target) {
	h := &t.f.header
	dir, name := path.Split(tg.Name)
	r := check.Collect(ctx, t.name, Codes, &t.apart)
	report := func(code, format string, args ...any) {
		at, ok := t.keyAt(partKey)
		if !ok {
			at = t.f.at.Sub(0, h.size)
		}
		r.Report(code, at, "file-metadata", format, args...)
	}
	n := -1
	fmt.Sscanf(name, "part-%05d.trv", &n)
	seal, _ := get(h.Meta, sealKey)
	p, ok := partIn(h)
	switch text, kept := get(h.Meta, partKey); {
	case !kept || tg.Tree == nil || t.f.noVerify:
		return
	case partName(n) != name:
		twin := partName(p.number)
		if q, other, is := t.beside(ctx, tg, path.Join(dir, twin)); ok && is && q == p && other == string(seal) {
			report("trevni.part.repeated", "it was written as %s, which stands beside it: its rows come twice", twin)
		}
		return
	case !ok:
		report("trevni.part.other", "%s is %q, which no writer makes", partKey, text)
		return
	case p.number != n:
		report("trevni.part.other", "it was written as %s, and stands in the place of %s", partName(p.number), name)
		return
	}
	if next := path.Join(dir, partName(n+1)); p.last {
	} else if gone(ctx, tg, next) {
		report("trevni.part.missing", "it is not the last of its table, and %s is missing", partName(n+1))
	} else if q, _, ok := t.beside(ctx, tg, next); ok && q.number == n+1 && q.after != string(seal) {
		report("trevni.part.other", "%s was written behind a file whose header has the checksum %q, and this one has "+
			"%q: one of the two is of another table, or older", partName(n+1), q.after, seal)
	}
	if p.after == "" {
		return
	}
	before := path.Join(dir, partName(n-1))
	if gone(ctx, tg, before) {
		report("trevni.part.missing", "%s, before it, is missing", partName(n-1))
	} else if _, seal, ok := t.beside(ctx, tg, before); ok && seal != p.after {
		report("trevni.part.other", "the header of %s has the checksum %q; the file that was before it when it was "+
			"written had %q: one of the two is of another table, or older", partName(n-1), seal, p.after)
	}
}

// beside is what another file says of being a part, and the checksum of its header. ok is false if it cannot be
// opened: who reads that one tells.
func (t *table) beside(ctx context.Context, tg format.Target, name string) (p partOf, seal string, ok bool) {
	f, err := openTarget(ctx, format.Target{Tree: tg.Tree, Name: name}, format.OpenOptions{Limits: t.f.limits})
	if err != nil {
		return p, "", false
	}
	defer f.src.Close()
	text, _ := get(f.header.Meta, sealKey)
	p, _ = partIn(&f.header)
	return p, string(text), true
}

func gone(ctx context.Context, tg format.Target, name string) bool {
	info, err := tg.Tree.Stat(ctx, name)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Dir
}

// keyAt is where the file's metadata has a key.
func (t *table) keyAt(key string) (at fault.Span, ok bool) {
	for _, p := range t.f.header.Meta {
		if p.Key == key {
			at, ok = p.at, true
		}
	}
	return at, ok
}
