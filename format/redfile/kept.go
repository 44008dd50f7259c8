package redfile

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/wire"
)

// takeArrow takes the Arrow schema that the writer kept, if there is one. It is an error if that is damaged: no
// writer but ours has one.
func (f *file) takeArrow(stored []leaf) (taken bool, err error) {
	sc, err := arrowOf(&f.meta, f.limits, f.metaAt)
	if errors.Is(err, fault.Limit) {
		return false, err
	}
	if err == nil && sc != nil {
		err = f.fitArrow(sc, stored)
	}
	if _, summed := f.meta.pair(sumKey); err == nil && sc != nil && !summed && f.opts.schema == "" {
		err = sameNames(sc, stored)
	}
	if err != nil {
		return false, fault.Corruptf(f.metaAt, "file_metadata.key_value_metadata."+schemaKey,
			"the Arrow schema of the file: %v", err)
	}
	return sc != nil, nil
}

// fitArrow takes an Arrow schema that has these leaves.
func (f *file) fitArrow(sc *arrow.Schema, stored []leaf) error {
	ls, err := arrowLeaves(sc)
	if err != nil {
		return err
	}
	if len(ls) != len(stored) && len(stored) > 0 {
		return fmt.Errorf("it has %d columns, and the file %d", len(ls), len(stored))
	}
	for i := range stored {
		if ls[i].typ != stored[i].typ || ls[i].maxDef != stored[i].maxDef || ls[i].maxRep != stored[i].maxRep {
			return fmt.Errorf("its column %s would be stored as %s with greatest levels %d and %d, and the file has "+
				"%s with %d and %d", ls[i].column.Name, ls[i].typ, ls[i].maxDef, ls[i].maxRep, stored[i].typ,
				stored[i].maxDef, stored[i].maxRep)
		}
		ls[i].path = stored[i].path
	}
	f.schema, f.leaves = sc, ls
	return nil
}

// takeCopy takes the Arrow schema of the sync block at the file's beginning, if there is one that is whole.
func (f *file) takeCopy(ctx context.Context, stored []leaf) bool {
	s, at := f.firstBlock(ctx)
	if s == nil || s.metadata == nil {
		return false
	}
	c := wire.NewInnerCursor(s.metadata, at, "sync.metadata")
	m, _ := parseFileMeta(c.Within(f.limits.Memory()))
	if c.Err() != nil {
		return false
	}
	sc, err := arrowOf(&m, f.limits, at)
	if err != nil || sc == nil || f.fitArrow(sc, stored) != nil {
		return false
	}
	f.meta.pairs = append(f.meta.pairs, m.pairs...)
	return true
}
