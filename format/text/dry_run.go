package text

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Limits for what a dry run keeps before it is discarded.
const (
	dryRunRows = 1024
	dryRunText = 4 << 20
)

// dryRun appends rows to builders whose arrays are never used, to find out whether the rows fit: what a row that does
// not fit leaves in the builders of a batch could not be removed.
type dryRun struct {
	mem   memory.Allocator
	cols  []array.Builder // by field, as those of the batch
	maps  []array.Builder // those of them that will have nothing after a half entry of a map
	play  func() error
	rows  int
	start int64 // the weight at which it was empty
}

// row tries the current row of b.
func (r *dryRun) row(b *batcher) error {
	if r.play == nil {
		r.cols = make([]array.Builder, len(b.cols))
		for i, c := range b.cols {
			if c != nil {
				r.cols[i] = array.NewBuilder(r.mem, c.Type())
				if hasMap(c.Type()) {
					r.maps = append(r.maps, r.cols[i])
				}
			}
		}
		r.play = b.from.into(r.cols, nil)
	}
	if r.rows == dryRunRows || b.from.weight()-r.start >= dryRunText {
		r.rows, r.start = 0, b.from.weight()
		empty(r.cols)
	}
	r.rows++
	err := r.play()
	if err != nil {
		for _, m := range r.maps {
			balance(m)
		}
	}
	return err
}

// hasMap reports whether there is a map in t.
func hasMap(t arrow.DataType) bool {
	if t.ID() == arrow.MAP {
		return true
	}
	n, ok := t.(arrow.NestedType)
	return ok && slices.ContainsFunc(n.Fields(), func(f arrow.Field) bool { return hasMap(f.Type) })
}

func (r *dryRun) release() {
	for _, c := range r.cols {
		if c != nil {
			c.Release()
		}
	}
}

// empty throws away what is in builders. Of many most have nothing.
func empty(cols []array.Builder) {
	for _, c := range cols {
		if c != nil && c.Len() > 0 {
			balance(c)
			c.NewArray().Release()
		}
	}
}
