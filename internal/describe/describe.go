// Package describe is the framework of a describer: it passes on the structure of a file node by node until the
// consumer stops, and records which bytes structures claim, so that verifiers can ask for the rest.
package describe

import (
	"context"
	"iter"

	"stoa/fault"
	"stoa/region"
)

// Outline passes on nodes. It is used by one goroutine.
type Outline struct {
	Ctx   context.Context
	Pages bool // the contents of pages are wanted, too

	yield   func(region.Node, error) bool
	stopped bool
	object  string // the file that is described
	cover   region.Coverage
	first   error
}

// Stream yields the nodes that show emits, and then the error that kept it from showing more.
func Stream(ctx context.Context, pages bool, show func(*Outline) error) iter.Seq2[region.Node, error] {
	return func(yield func(region.Node, error) bool) {
		o := &Outline{Ctx: ctx, Pages: pages, yield: yield}
		if err := o.run(show); err != nil && !o.stopped {
			yield(region.Node{}, err)
		}
	}
}

// Claims returns the parts of whole that no emitted structure claims, and those that two claim; the error is show's.
func Claims(ctx context.Context, whole fault.Span, show func(*Outline) error) (gaps, overlaps []fault.Span, err error) {
	o := &Outline{Ctx: ctx, yield: func(region.Node, error) bool { return true }}
	err = o.run(show)
	gaps, overlaps = o.cover.Check(whole)
	return gaps, overlaps, err
}

// run calls show; an ended context is an error, so that a truncated outline never looks complete.
func (o *Outline) run(show func(*Outline) error) error {
	if err := show(o); err != nil {
		return err
	}
	return o.Ctx.Err()
}

// Left reports whether the consumer stopped, or the context ended: loops end then.
func (o *Outline) Left() bool { return o.stopped || o.Ctx.Err() != nil }

// Emit passes on a node.
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

// Node emits a node with a position in the file.
func (o *Outline) Node(depth int, kind region.Kind, name, value string, at fault.Span) {
	o.Emit(region.Node{Depth: depth, Kind: kind, Name: name, Value: value, At: at, Inner: -1})
}

// Gaps emits the parts of whole that no node has claimed.
func (o *Outline) Gaps(depth int, whole fault.Span) {
	gaps, _ := o.cover.Check(whole)
	for _, g := range gaps {
		o.Node(depth, region.Gap, "gap", "no structure claims these bytes", g)
	}
}

// Keep keeps the first error that is not reported at once: what follows it may be intact.
func (o *Outline) Keep(err error) {
	if o.first == nil {
		o.first = err
	}
}

// First is the error that was kept; the context's error takes precedence.
func (o *Outline) First() error {
	if err := o.Ctx.Err(); err != nil {
		return err
	}
	return o.first
}
