package text

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Numbers of rows and bytes after which a dry run discards the appended values.
const (
	dryRunRows = 1024
	dryRunText = 4 << 20
)

// dryRun appends rows to builders whose arrays are never used, to determine whether the rows fit the schema: the values
// of a row that fails could not be removed from the builders of a batch.
type dryRun struct {
	mem    memory.Allocator
	cols   []array.Builder // by field, like those of the batch
	maps   []array.Builder // the builders of cols with a map, which refuse a value after half an entry
	append func() error
	rows   int
	start  int64 // the weight when cols were last emptied
}

// row appends the current row of b, and returns the error, if any.
func (r *dryRun) row(b *batcher) error {
	if r.append == nil {
		r.cols = make([]array.Builder, len(b.cols))
		for i, c := range b.cols {
			if c != nil {
				r.cols[i] = array.NewBuilder(r.mem, c.Type())
				if hasMap(c.Type()) {
					r.maps = append(r.maps, r.cols[i])
				}
			}
		}
		r.append = b.from.into(r.cols, nil)
	}
	if r.rows == dryRunRows || b.from.weight()-r.start >= dryRunText {
		r.rows, r.start = 0, b.from.weight()
		empty(r.cols)
	}
	r.rows++
	err := r.append()
	if err != nil {
		for _, m := range r.maps {
			balance(m)
		}
	}
	return err
}

// hasMap reports whether t is or contains a map.
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

// empty discards the values in builders.
func empty(cols []array.Builder) {
	for _, c := range cols {
		if c != nil && c.Len() > 0 {
			balance(c)
			c.NewArray().Release()
		}
	}
}
