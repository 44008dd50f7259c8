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
	"stoa/internal/describe"
	"stoa/internal/scan"
	"stoa/internal/sorted"
	"stoa/region"
)

// Describe describes parts, row groups, columns and pages as the reader knows them. All other bytes are metadata, about
// which only the format knows more.
func Describe(ctx context.Context, tg format.Target, title string, src scan.Source) iter.Seq2[region.Node, error] {
	return describe.Stream(ctx, false, func(out *describe.Outline) error {
		return (&outline{out, src.Reader, map[string][]fault.Span{}}).all(tg, title)
	})
}

type outline struct {
	*describe.Outline
	r       format.Reader
	claimed map[string][]fault.Span // by pages, by object
}

func (o *outline) all(tg format.Target, title string) error {
	whole := map[string]fault.Span{}
	if src, base, size, err := tg.Open(o.Ctx); err == nil { // a directory itself has no bytes
		whole[tg.Name] = fault.Span{Object: tg.Name, Off: base, Len: size}
		src.Close()
	}
	o.Node(0, region.Struct, title, fault.Count(o.r.Schema().NumFields(), "column"),
		cmp.Or(whole[tg.Name], fault.Span{Object: tg.Name}))
	for p, err := range o.r.Parts(o.Ctx, allOf(o.r)) {
		if err == nil {
			err = o.part(p)
		}
		if err = o.keepDamage(err); err != nil || o.Left() {
			return err
		}
	}
	for object := range o.claimed {
		if _, ok := whole[object]; !ok {
			if info, err := tg.Tree.Stat(o.Ctx, object); err == nil {
				whole[object] = fault.Span{Object: object, Len: info.Size}
			}
		}
	}
	for _, object := range slices.Sorted(maps.Keys(whole)) {
		o.between(whole[object])
	}
	return o.First()
}

// keepDamage records damage for the end, since the rest may be intact, and returns other errors.
func (o *outline) keepDamage(err error) error {
	if errors.Is(err, fault.Corrupt) {
		o.Keep(err)
		return nil
	}
	return err
}

func (o *outline) part(p format.Part) error {
	o.Node(1, region.Struct, "part", p.Ref, fault.Span{Object: p.Ref})
	groups, err := o.r.RowGroups(o.Ctx, p, allOf(o.r))
	if err != nil {
		return err
	}
	_, batches := o.r.(format.Batcher)
	for _, g := range groups {
		value := g.Name
		if g.Rows >= 0 {
			value = fault.Count(g.Rows, "row")
		}
		o.Node(2, region.Struct, fmt.Sprintf("row group[%d]", g.Index), value, fault.Span{Object: p.Ref})
		for col := 0; !batches && col < len(o.r.Columns()); col++ {
			if err := o.keepDamage(o.column(g, col)); err != nil || o.Left() {
				return err
			}
		}
	}
	return nil
}

func (o *outline) column(g format.RowGroup, col int) error {
	c := o.r.Columns()[col]
	o.Node(3, region.Struct, c.Name, c.Type.String(), fault.Span{Object: g.Part})
	i := 0
	return pagesOf(o.Ctx, o.r, g, col, func(p format.Page, dict bool) bool {
		name, value := fmt.Sprintf("page[%d]", i), ""
		switch {
		case dict:
			name = "dictionary"
		case p.First >= 0 && p.Rows >= 0:
			value = fmt.Sprintf("rows %d to %d", p.First, p.First+p.Rows)
		case p.Rows >= 0:
			value = fault.Count(p.Rows, "row")
		}
		if !dict {
			i++
		}
		for _, at := range p.Spans {
			if at = o.claim(at); at.Len > 0 {
				o.Node(4, region.Data, name, value, at)
			}
		}
		return !o.Left()
	})
}

// claim records the bytes of a page. If several pages share bytes because they were cut from one block, they are
// described once.
func (o *outline) claim(at fault.Span) fault.Span {
	known := o.claimed[at.Object]
	if k := len(known); k > 0 && known[k-1] == at {
		return fault.Span{}
	}
	o.claimed[at.Object] = append(known, at)
	return at
}

// between describes the bytes that belong to no page.
func (o *outline) between(whole fault.Span) {
	pages := slices.Clone(o.claimed[whole.Object])
	sorted.By(pages, func(a, b fault.Span) int { return cmp.Compare(a.Off, b.Off) })
	at := whole.Off
	for _, p := range append(pages, fault.Span{Off: whole.End()}) {
		if p.Off > at {
			o.Node(1, region.Data, "metadata", "", fault.Span{Object: whole.Object, Off: at, Len: p.Off - at})
		}
		at = max(at, p.End())
	}
}
