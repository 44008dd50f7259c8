package ipc

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/vec"
)

// verify reads everything. Its findings are arrow.open (the schema or the footer), arrow.batch (a record
// batch), arrow.layout (messages and footer contradict each other), arrow.stream.end (a stream has no end mark)
// and arrow.unreadable (not the file's fault, perhaps).
func verify(ctx context.Context, t format.Target, opts format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		r, err := openReader(ctx, t, opts)
		if err != nil {
			yield(finding("arrow.open", t.Name, [2]int64{-1, -1}, err))
			return
		}
		defer r.Close()
		if opts.Depth != format.Quick && !r.verifyBatches(ctx, yield) {
			return
		}
		if err := r.misled(ctx); err != nil && !yield(finding("arrow.footer", t.Name, [2]int64{-1, -1}, err)) {
			return
		}
		if r.unused != nil {
			f := finding("arrow.layout", t.Name, [2]int64{-1, -1}, r.unused)
			f.Code, f.Severity, f.Message, f.Lost = "arrow.layout", region.Warning, unusedSchema+f.Message, 0
			if !yield(f) {
				return
			}
		}
		whole, end := r.file, r.base // where the last message ends
		for n, err := range describe(ctx, t, format.DescribeOptions{OpenOptions: opts}) {
			whole = whole || err != nil || n.Name == "end of stream"
			if n.Depth == 1 {
				end = n.At.End()
			}
			switch {
			case err != nil:
				if !yield(finding("arrow.layout", t.Name, [2]int64{-1, -1}, err)) {
					return
				}
			case n.Kind == region.Gap && !r.file:
				if !yield(behindEnd(n.At)) {
					return
				}
			case n.Kind == region.Gap:
				f := region.Finding{Code: "arrow.layout", Severity: region.Warning, At: n.At, Part: t.Name,
					Rows:    [2]int64{-1, -1},
					Message: unclaimed(n)}
				if !yield(f) {
					return
				}
			}
		}
		if !whole && !r.partial {
			yield(r.noEnd(end))
		}
	}
}

const unusedSchema = "the schema at the beginning cannot be read, but the file is read by its footer's: "

// unclaimed says what a gap is.
func unclaimed(n region.Node) string {
	if n.Value == "" {
		return fmt.Sprintf("%d bytes that no message claims", n.At.Len)
	}
	return unusedSchema + n.Value
}

func (r *reader) verifyBatches(ctx context.Context, yield func(region.Finding) bool) bool {
	q := format.Query{}
	for i := range r.Columns() {
		q.Cols = append(q.Cols, i)
	}
	groups, err := r.RowGroups(ctx, format.Part{Ref: r.name}, q)
	if err != nil {
		return yield(finding("arrow.open", r.name, [2]int64{-1, -1}, err))
	}
	at := int64(0)
	for _, g := range groups {
		start := at
		for b, err := range r.Batches(ctx, g, q, vec.Range{}, nil) {
			if err == nil {
				at += b.NumRows()
				continue
			}
			rows := [2]int64{-1, -1}
			if g.Rows >= 0 {
				rows = [2]int64{start, start + g.Rows}
			}
			if !yield(finding("arrow.batch", r.name, rows, err)) {
				return false
			}
		}
		if g.Rows >= 0 {
			at = start + g.Rows
		}
	}
	return true
}

func finding(code, part string, rows [2]int64, err error) region.Finding {
	f := region.Finding{Code: code, Severity: region.Error, Message: strings.ReplaceAll(err.Error(), "\n", "; "),
		Part: part, Rows: rows, Lost: rows[1] - rows[0]}
	if rows[0] < 0 {
		f.Lost = -1
	}
	var e *fault.Error
	if !errors.As(err, &e) || e.Class != fault.Corrupt {
		f.Code = "arrow.unreadable"
	}
	if e != nil {
		f.Class = region.NoDamage(e)
		f.At, f.Path, f.Message = e.At, e.Path, e.Reason
		if e.Cause != nil {
			f.Message = strings.TrimPrefix(f.Message+": "+e.Cause.Error(), ": ")
		}
	}
	return f
}
