package stoa

import (
	"context"
	"path"
	"strings"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/glob"
	"stoa/internal/parts"
	"stoa/internal/watched"
	"stoa/region"
	"stoa/store"
)

// places looks for tables in directories: below those that no format owns, and next to the tables in those that a
// format owns. It goes exactly as far as Verify, so that all verbs agree on what is a table.
type places struct {
	ctx context.Context
	o   OpenOptions
	// table is called with a table and returns what its format opened; nil means that what lies next to the table is
	// not visited.
	table func(tg found) *opened
	// left is called with an object that cannot be read, which may or may not have been a table. false ends the search.
	left    func(l leftOut) bool
	above   []*siblings // the tables whose directories contain this one
	stopped bool
}

// target visits a table and what lies next to it.
func (p *places) target(tg found, depth int) error {
	seen := p.table(tg)
	if seen == nil {
		return p.ctx.Err()
	}
	several, err := mayHoldSeveral(p.ctx, tg, p.o)
	if err != nil || !several {
		return err
	}
	return p.siblings(tg, seen, depth)
}

func (p *places) leave(name string, err error) {
	p.stopped = p.stopped || !p.left(leftOut{name: name, err: err})
}

// dir visits everything in a directory that no format owns.
func (p *places) dir(tree store.Tree, name string, depth int) error {
	if depth > glob.MaxDepth {
		p.leave(name, fault.Unsupportedf(fault.Span{Object: name}, "", "more than %d directories deep", glob.MaxDepth))
		return nil
	}
	if err := glob.Unfinished(p.ctx, tree, name); err != nil {
		p.leave(name, err)
		return nil
	}
	var names []string
	for info, err := range tree.List(p.ctx, name) {
		if !info.Dir {
			names = append(names, info.Name)
		}
		switch base := path.Base(info.Name); {
		case err != nil && info.Name == "" && depth == 0:
			return err
		case err != nil && info.Name == "":
			p.leave(name, err)
			return p.ctx.Err()
		case base[0] == '.' && (info.Dir || err != nil || strings.HasPrefix(base, store.TempPrefix)):
		case err != nil:
			p.leave(info.Name, err)
		default:
			err = p.entry(tree, info, nil, false, depth)
			if err != nil {
				return err
			}
		}
		if p.stopped {
			return nil
		}
	}
	p.irregular(tree, name)
	for _, l := range missingParts(p.ctx, tree, names, p.o) {
		p.leave(l.name, l.err)
	}
	return p.ctx.Err()
}

// irregular reports an entry of a directory that is not a file.
func (p *places) irregular(tree store.Tree, dir string) {
	for irregular := range store.IrregularIn(p.ctx, tree, dir) {
		if path.Base(irregular.Name)[0] != '.' {
			p.leave(irregular.Name, IrregularError(irregular, p.o))
		}
	}
}

// entry visits an entry of a directory that owner owns; nil means no owner. within means that owner's system knows that
// there is no table.
func (p *places) entry(tree store.Tree, info store.Info, owner *format.Format, within bool, depth int) error {
	tg := format.Target{Tree: tree, Name: info.Name}
	f, err := Probe(p.ctx, tg, p.o)
	if p.ctx.Err() != nil {
		return p.ctx.Err()
	}
	switch known := err == nil; {
	case known && within && f.System() == owner.System(): // left behind by its own system
	case path.Base(info.Name) == parts.ManifestName: // missingParts reads it
	case known && glob.Ignored(info.Name):
		p.leave(info.Name, fault.Unsupportedf(fault.Span{Object: info.Name}, "",
			"what begins with _ or . in a directory of tables is none of them"))
	case known:
		return p.target(found{Target: tg, format: f}, depth+1)
	case glob.Ignored(info.Name):
	case info.Dir && (!store.Failing(err) || watched.Denied(err)):
		return p.dir(tree, info.Name, depth+1)
	default:
		l := leftOut{info.Name, err, misnamed(p.ctx, info.Name, p.o, err)}
		if l.known != nil {
			l.err = fault.Corruptf(l.known.At, "", "%s", l.known.Message)
		}
		if owner == nil || l.known != nil || store.Failing(err) {
			p.leave(l.name, l.err)
		}
	}
	return nil
}

// siblings visits whatever in the directory of a table does not belong to it. seen recorded what the format opened.
func (p *places) siblings(tg found, seen *opened, depth int) error {
	tg.Tree = seen.Tree
	b := newSiblings(p.ctx, tg, seen, p.o, p.above)
	p.above = append(p.above, b)
	defer func() { p.above = p.above[:len(p.above)-1] }()
	b.irregular = func(dir string) error {
		p.irregular(seen.Tree, dir)
		return nil
	}
	b.failed = func(name string, err error) error {
		if name == "" {
			return err
		}
		p.leave(name, err)
		return p.ctx.Err()
	}
	b.foreign = func(info store.Info, claim format.Claim, within bool, depth int) error {
		if base := path.Base(info.Name); claim == format.Loose || base[0] == '.' &&
			(info.Dir || strings.HasPrefix(base, store.TempPrefix)) {
			return nil
		}
		// where the format opened nothing, its own files cannot be told from others
		within = within || claim == format.Reported || len(seen.files) == 0
		owner := tg.format
		if above, _ := b.claimOf(path.Dir(path.Clean(info.Name)), true); !within && above == format.AboveTable {
			owner = nil // of the tables, not of a file beside them; an error has been reported
		}
		return p.entry(seen.Tree, info, owner, within, depth)
	}
	b.stopped = func() bool { return p.stopped }
	return b.all(tg.Name, depth)
}

// siblings walks a directory that a format owns, looking for objects that do not belong to the format. What the format
// opened belongs to it, and what it claims (see format.Format.Claims). Without claims, a directory in which the format
// opened a file belongs to it with everything in it.
type siblings struct {
	ctx       context.Context
	tree      store.Tree
	seen      *opened
	claims    format.Claimer // nil: the format has none
	other     func(info store.Info) bool
	above     []*siblings
	irregular func(dir string) error
	failed    func(name string, err error) error // handles an error of listing name
	foreign   func(info store.Info, claim format.Claim, within bool, depth int) error
	stopped   func() bool
}

func newSiblings(ctx context.Context, tg found, seen *opened, o OpenOptions, above []*siblings) *siblings {
	b := &siblings{ctx: ctx, tree: seen.Tree, seen: seen, above: above}
	b.other = func(info store.Info) bool {
		f, err := Probe(ctx, format.Target{Tree: seen.Tree, Name: info.Name}, o)
		return err == nil && f.System() != tg.format.System()
	}
	if tg.format.Claims != nil {
		b.claims = tg.format.Claims(ctx, tg.Target, o.internal())
	}
	return b
}

// claimOf returns the format's claim on a name. If the store fails, that is reported, and the object is visited on its
// own.
func (b *siblings) claimOf(name string, dir bool) (format.Claim, error) {
	if b.claims == nil {
		return format.Foreign, nil
	}
	claim, err := b.claims(path.Clean(name), dir)
	if err != nil {
		return format.Reported, b.failed(name, err)
	}
	return claim, nil
}

// all walks the directory of the table.
func (b *siblings) all(name string, depth int) error {
	claim, err := b.claimOf(name, true)
	if err != nil || b.stopped() {
		return err
	}
	return b.walk(name, claim == format.OfTable, depth)
}

func (b *siblings) walk(name string, within bool, depth int) error {
	claimed := within
	if within = within || b.seen.direct[path.Clean(name)]; within && b.claims == nil || depth > glob.MaxDepth {
		return nil
	}
	if err := b.irregular(name); err != nil || b.stopped() {
		return err
	}
	for info, err := range b.tree.List(b.ctx, name) {
		if err == nil {
			// a format with claims decides whether a directory belongs to the table: it may be another table next to
			// its files
			err = b.child(info, within && (claimed || !info.Dir), depth)
		}
		if err != nil {
			err = b.failed(info.Name, err)
		}
		if err != nil || b.stopped() {
			return err
		}
	}
	return b.ctx.Err()
}

func (b *siblings) child(info store.Info, within bool, depth int) error {
	child := path.Clean(info.Name)
	claim, err := b.claimOf(info.Name, info.Dir)
	if err != nil || b.stopped() {
		return err
	}
	own := claim == format.OfTable || claim == format.AboveTable
	if info.Dir && !own {
		if a := b.listedAbove(info.Name); a != nil {
			return a.walk(info.Name, true, depth+1)
		}
	}
	switch {
	case info.Dir && b.claims != nil && claim != format.OfTable && (own || b.seen.below[child]) && b.other(info):
		// a table of another system, whose directory contains one of this system
		return b.foreign(info, format.Foreign, false, depth)
	case info.Dir && (own || claim != format.Reported && b.seen.below[child]):
		return b.walk(info.Name, claim == format.OfTable, depth+1)
	case own || b.seen.files[child]:
		return nil
	}
	return b.foreign(info, claim, within, depth)
}

// listedAbove returns the enclosing place that makes a directory a table or a part of one, or nil.
func (b *siblings) listedAbove(name string) *siblings {
	for _, a := range b.above {
		if claim, err := a.claimOf(name, true); err == nil && claim == format.OfTable {
			return a
		}
	}
	return nil
}

// opened is a tree that records in which directories something was opened.
type opened struct {
	store.Tree
	mu     sync.Mutex
	files  map[string]bool // opened files
	direct map[string]bool // directories with an opened object directly in them
	below  map[string]bool // directories with an opened object at any depth
}

func newOpened(t store.Tree) *opened {
	return &opened{Tree: t, files: map[string]bool{}, direct: map[string]bool{}, below: map[string]bool{}}
}

// Unwrap returns the underlying tree.
func (o *opened) Unwrap() store.Tree { return o.Tree }

func (o *opened) Open(ctx context.Context, name string) (store.Source, error) {
	s, err := o.Tree.Open(ctx, name)
	if err == nil && !format.Glancing(ctx) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.files[path.Clean(name)] = true
		dir := path.Dir(path.Clean(name))
		o.direct[dir] = true
		for ; !o.below[dir]; dir = path.Dir(dir) {
			o.below[dir] = true
		}
	}
	return s, err
}

// irregular reports the entries of a directory that are not files. One that is named like a file of a table stands for
// a lost file.
func (v *dirVerifier) irregular(dir string, b *siblings) error {
	for irregular := range store.IrregularIn(v.ctx, v.o.tree(), dir) {
		f := irregularFinding(irregular, v.o)
		claim := format.Foreign
		if b != nil {
			var err error
			if claim, err = b.claimOf(irregular.Name, false); err != nil {
				return err
			}
		}
		if claim == format.OfTable && f.Severity < region.Error {
			f.Code, f.Severity, f.Lost, f.Message = "file.unreadable", region.Error, -1,
				"by its name it is a file of the table, but: "+irregular.What
		}
		if v.files++; !v.stopped {
			v.emit(*f)
		}
	}
	return nil
}
