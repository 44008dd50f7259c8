package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/vec"
)

// errLeft says that the loop over the nodes was left.
var errLeft = errors.New("left")

// Describe gives parts, row groups, columns and pages as the reader knows them. What is none of their bytes is
// metadata, of which only the format knows more.
func Describe(ctx context.Context, tg format.Target, title string, src scan.Source) iter.Seq2[region.Node, error] {
	return func(yield func(region.Node, error) bool) {
		o := &outline{ctx: ctx, r: src.Reader, yield: yield, pages: map[string][]fault.Span{}}
		err := o.all(tg, title)
		if err != nil && !errors.Is(err, errLeft) {
			yield(region.Node{}, err)
		}
	}
}

type outline struct {
	ctx   context.Context
	r     format.Reader
	yield func(region.Node, error) bool
	pages map[string][]fault.Span // by object
}

// node gives a node of bytes at a place; a place without length has none of its own.
func (o *outline) node(depth int, kind region.Kind, name, value string, at fault.Span) error {
	if !o.yield(region.Node{Depth: depth, Kind: kind, Name: name, Value: value, At: at, Inner: -1}, nil) {
		return errLeft
	}
	return nil
}

func (o *outline) all(tg format.Target, title string) error {
	whole := map[string]fault.Span{}
	if src, base, size, err := tg.Open(o.ctx); err == nil { // a directory has no bytes of its own
		whole[tg.Name] = fault.Span{Object: tg.Name, Off: base, Len: size}
		src.Close()
	}
	value := fmt.Sprintf("%d columns", o.r.Schema().NumFields())
	err := o.node(0, region.Struct, title, value, cmp.Or(whole[tg.Name], fault.Span{Object: tg.Name}))
	if err == nil {
		err = o.parts()
	}
	if errors.Is(err, errLeft) {
		return err
	}
	for object := range o.pages {
		if _, ok := whole[object]; !ok {
			if info, serr := tg.Tree.Stat(o.ctx, object); serr == nil {
				whole[object] = fault.Span{Object: object, Len: info.Size}
			}
		}
	}
	for _, object := range slices.Sorted(maps.Keys(whole)) {
		if left := o.between(whole[object]); left != nil {
			return left
		}
	}
	return err
}

// parts gives all parts. Of damage, what is after it is given all the same, and the first error is kept.
func (o *outline) parts() (first error) {
	for p, err := range o.r.Parts(o.ctx, allOf(o.r)) {
		if err == nil {
			err = o.part(p)
		}
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return err
		}
		first = cmp.Or(first, err)
	}
	return first
}

func (o *outline) part(p format.Part) error {
	if err := o.node(1, region.Struct, "part", p.Ref, fault.Span{Object: p.Ref}); err != nil {
		return err
	}
	groups, first := o.r.RowGroups(o.ctx, p, allOf(o.r))
	_, batches := o.r.(format.Batcher)
	for _, g := range groups {
		value := g.Name
		if g.Rows >= 0 {
			value = fmt.Sprintf("%d rows", g.Rows)
		}
		err := o.node(2, region.Struct, fmt.Sprintf("row group[%d]", g.Index), value, fault.Span{Object: p.Ref})
		for col := 0; err == nil && !batches && col < len(o.r.Columns()); col++ {
			err = o.column(g, col)
			if errors.Is(err, fault.Corrupt) {
				first, err = cmp.Or(first, err), nil
			}
		}
		if err != nil {
			return err
		}
	}
	return first
}

func (o *outline) column(g format.RowGroup, col int) (err error) {
	c := o.r.Columns()[col]
	if err := o.node(3, region.Struct, c.Name, c.Type.String(), fault.Span{Object: g.Part}); err != nil {
		return err
	}
	i := 0
	damage := pagesOf(o.ctx, o.r, g, col, func(p format.Page, dict bool) bool {
		name, value := fmt.Sprintf("page[%d]", i), ""
		switch {
		case dict:
			name = "dictionary"
		case p.First >= 0 && p.Rows >= 0:
			value = fmt.Sprintf("rows %d to %d", p.First, p.First+p.Rows)
		case p.Rows >= 0:
			value = fmt.Sprintf("%d rows", p.Rows)
		}
		if !dict {
			i++
		}
		for _, at := range p.Spans {
			if at = o.claim(at); at.Len > 0 && err == nil {
				err = o.node(4, region.Data, name, value, at)
			}
		}
		return err == nil
	})
	return cmp.Or(err, damage)
}

// claim notes the bytes of a page; those that a page has already, cut from one block, are given once.
func (o *outline) claim(at fault.Span) fault.Span {
	known := o.pages[at.Object]
	if k := len(known); k > 0 && known[k-1] == at {
		return fault.Span{}
	}
	o.pages[at.Object] = append(known, at)
	return at
}

// between gives what no page has.
func (o *outline) between(whole fault.Span) error {
	var pages vec.Ranges
	for _, s := range o.pages[whole.Object] {
		pages = append(pages, vec.Range{From: s.Off, To: s.End()})
	}
	slices.SortFunc(pages, func(a, b vec.Range) int { return cmp.Compare(a.From, b.From) })
	at := whole.Off
	for _, p := range append(pages, vec.Range{From: whole.End(), To: whole.End()}) {
		if p.From > at {
			err := o.node(1, region.Data, "metadata", "", fault.Span{Object: whole.Object, Off: at, Len: p.From - at})
			if err != nil {
				return err
			}
		}
		at = max(at, p.To)
	}
	return nil
}
