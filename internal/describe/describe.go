// Package describe is the framework of a describer: it passes on the structure of a file node by node until the
// consumer stops, and records which bytes the structures claim, so that verifiers can ask for unclaimed bytes.
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
	Pages bool // the contents of pages are requested as well

	yield   func(region.Node, error) bool
	stopped bool
	object  string // the file that is being described
	cover   region.Coverage
	first   error
}

// Stream yields the nodes that show emits, and then the error that stopped it, if any.
func Stream(ctx context.Context, pages bool, show func(*Outline) error) iter.Seq2[region.Node, error] {
	return func(yield func(region.Node, error) bool) {
		o := &Outline{Ctx: ctx, Pages: pages, yield: yield}
		if err := o.run(show); err != nil && !o.stopped {
			yield(region.Node{}, err)
		}
	}
}

// Claims returns the parts of whole that no emitted structure claims, and the parts that two claim; the error is that
// of show.
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

// Left reports whether the consumer stopped or the context ended. Loops must then end.
func (o *Outline) Left() bool { return o.stopped || o.Ctx.Err() != nil }

// Emit passes on a node.
func (o *Outline) Emit(n region.Node) {
	if o.Left() {
		return
	}
	if n.Depth == 0 && n.At.Object != o.object { // claims in the previous file are no longer needed
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

// Keep records the first error that is not reported at once because the rest of the file may be intact.
func (o *Outline) Keep(err error) {
	if o.first == nil {
		o.first = err
	}
}

// First returns the error recorded by Keep; the context's error takes precedence.
func (o *Outline) First() error {
	if err := o.Ctx.Err(); err != nil {
		return err
	}
	return o.first
}
