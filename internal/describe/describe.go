// Package describe is the shell of a describer: the anatomy of a file goes out node by node until nobody wants more,
// and what its structures claim of the file is noted, so that verifiers ask the describer for the rest.
package describe

import (
	"context"
	"iter"

	"stoa/fault"
	"stoa/region"
)

// Outline gives nodes on. It is used by one goroutine.
type Outline struct {
	Ctx   context.Context
	Pages bool // what is in pages is wanted, too

	yield   func(region.Node, error) bool
	stopped bool
	object  string // the file that is described
	cover   region.Coverage
	first   error
}

// Stream gives the nodes that show emits, and then the error that kept it from showing more.
func Stream(ctx context.Context, pages bool, show func(*Outline) error) iter.Seq2[region.Node, error] {
	return func(yield func(region.Node, error) bool) {
		o := &Outline{Ctx: ctx, Pages: pages, yield: yield}
		if err := o.run(show); err != nil && !o.stopped {
			yield(region.Node{}, err)
		}
	}
}

// Claims is what the structures that show emits leave of whole, and what two of them have; the error is that of show.
func Claims(ctx context.Context, whole fault.Span, show func(*Outline) error) (gaps, overlaps []fault.Span, err error) {
	o := &Outline{Ctx: ctx, yield: func(region.Node, error) bool { return true }}
	err = o.run(show)
	gaps, overlaps = o.cover.Check(whole)
	return gaps, overlaps, err
}

// run is show, with an error if the context ended: what is cut there never looks like all.
func (o *Outline) run(show func(*Outline) error) error {
	if err := show(o); err != nil {
		return err
	}
	return o.Ctx.Err()
}

// Left reports that nobody wants more, or the context ended: loops end.
func (o *Outline) Left() bool { return o.stopped || o.Ctx.Err() != nil }

// Emit gives a node on.
func (o *Outline) Emit(n region.Node) {
	if o.Left() {
		return
	}
	if n.Depth == 0 && n.At.Object != o.object { // what the structures of the file before claim is no more asked for
		o.object, o.cover = n.At.Object, region.Coverage{}
	}
	o.cover.Add(n)
	o.stopped = !o.yield(n, nil)
}

// Node emits a node whose place is in the file.
func (o *Outline) Node(depth int, kind region.Kind, name, value string, at fault.Span) {
	o.Emit(region.Node{Depth: depth, Kind: kind, Name: name, Value: value, At: at, Inner: -1})
}

// Gaps emits what no node has claimed of whole.
func (o *Outline) Gaps(depth int, whole fault.Span) {
	gaps, _ := o.cover.Check(whole)
	for _, g := range gaps {
		o.Node(depth, region.Gap, "gap", "no structure claims these bytes", g)
	}
}

// Keep keeps the first error that is not reported at once: what comes after it may be whole.
func (o *Outline) Keep(err error) {
	if o.first == nil {
		o.first = err
	}
}

// First is the error that was kept; that of the context goes before it.
func (o *Outline) First() error {
	if err := o.Ctx.Err(); err != nil {
		return err
	}
	return o.first
}
