package ipc

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/check"
	"stoa/region"
	"stoa/vec"
)

// verify reads all batches and checks the structure of the file. Its findings are arrow.open (the schema or the
// footer), arrow.batch (a record batch), arrow.layout (messages and footer contradict each other), arrow.stream.end (a
// stream has no end mark), arrow.stream.rest (bytes after it) and arrow.unreadable (the store failed, or something is
// unsupported).
func verify(ctx context.Context, t format.Target, opts format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		v := &verifier{check.New(ctx, t.Name, codes, yield)}
		v.Read, v.CodeOf = "arrow.unreadable", codeOf
		r, err := openReader(ctx, t, opts)
		if err != nil {
			v.Blame("arrow.open", err, -1, -1)
			return
		}
		defer r.Close()
		if opts.Depth != format.Quick {
			v.batches(ctx, r)
		}
		v.Blame("arrow.footer", r.checkFooter(ctx), -1, -1)
		if r.unused != nil {
			f := codes.Of("arrow.layout", r.unused, t.Name)
			f.Message = unusedSchema + f.Message
			v.Emit(f)
		}
		if !v.Stopped() {
			v.layout(r, anatomy(ctx, t, format.DescribeOptions{OpenOptions: opts}))
		}
	}
}

type verifier struct{ *check.Reporter }

// codeOf returns code if the error is damage, arrow.unreadable otherwise.
func codeOf(code string, e *fault.Error) string {
	if e.Class != fault.Corrupt {
		return "arrow.unreadable"
	}
	return code
}

// layout checks the structure of the file: bytes that no message claims, and how a stream ends.
func (v *verifier) layout(r *reader, anatomy iter.Seq2[region.Node, error]) {
	whole, end := r.file, r.base // end of the last message
	for n, err := range anatomy {
		whole = whole || err != nil || n.Name == "end of stream"
		if n.Depth == 1 {
			end = n.At.End()
		}
		switch {
		case err != nil:
			f := codes.Of(codeOf("arrow.layout", faultOf(err)), err, v.Part)
			f.Severity, f.Lost = region.Error, -1 // a message is damaged, not the bytes between messages
			v.Emit(f)
		case n.Kind == region.Gap && !r.file:
			v.Emit(afterEnd(n.At))
		case n.Kind == region.Gap:
			v.Report("arrow.layout", n.At, "", "%s", unclaimed(n))
		}
		if v.Stopped() {
			return
		}
	}
	if !whole && !r.partial {
		v.Emit(r.noEnd(end))
	}
}

// faultOf returns the fault.Error in err; if there is none, an error that is not damage.
func faultOf(err error) *fault.Error {
	e := &fault.Error{Class: fault.Bug}
	errors.As(err, &e)
	return e
}

const unusedSchema = "the schema at the beginning cannot be read, but the file is read by its footer's: "

// unclaimed returns the message of a finding about a gap.
func unclaimed(n region.Node) string {
	if n.Value == "" {
		return fmt.Sprintf("%d bytes that no message claims", n.At.Len)
	}
	return unusedSchema + n.Value
}

// batches reads all record batches.
func (v *verifier) batches(ctx context.Context, r *reader) {
	q := format.Query{}
	for i := range r.Columns() {
		q.Cols = append(q.Cols, i)
	}
	groups, err := r.RowGroups(ctx, format.Part{Ref: r.name}, q)
	v.Blame("arrow.open", err, -1, -1)
	at := int64(0)
	for _, g := range groups {
		first, end := int64(-1), int64(-1)
		if g.Rows >= 0 {
			first, end = at, at+g.Rows
		}
		for b, err := range r.Batches(ctx, g, q, vec.Range{}, nil) {
			if err == nil && g.Rows < 0 {
				at += b.NumRows()
			}
			if v.Blame("arrow.batch", err, first, end); v.Stopped() {
				return
			}
		}
		at = max(at, end)
	}
}
