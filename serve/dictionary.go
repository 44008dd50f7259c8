package serve

import (
	"context"

	"stoa/internal/cells"
	"stoa/vec"
)

// The limits of a list of entries.
const (
	maxEntries      = 1000
	maxDictionaries = 100 // that are read
)

// dictionaryDoc has entries of the dictionaries of a column.
type dictionaryDoc struct {
	Dictionaries int      `json:"dictionaries"`  // that were read
	Entries      []string `json:"entries"`       // of them, each once, in the order in which they are stored
	Cut          bool     `json:"cut,omitempty"` // there are more
}

// dictionary returns the entries of a column's dictionaries; nil: it has none.
func dictionary(ctx context.Context, t *opened, column string) (*dictionaryDoc, error) {
	d := &dictionaryDoc{Entries: []string{}}
	seen := map[string]bool{}
	var failed error
	err := t.Dictionaries(ctx, column, func(entries *vec.Vector) bool {
		if d.Cut = d.Dictionaries == maxDictionaries; d.Cut {
			return false
		}
		d.Dictionaries++
		failed = d.add(entries, seen)
		return failed == nil && !d.Cut
	})
	if err == nil {
		err = failed
	}
	if err != nil || d.Dictionaries == 0 {
		return nil, err
	}
	return d, nil
}

func (d *dictionaryDoc) add(entries *vec.Vector, seen map[string]bool) error {
	a, err := entries.View(entries.Len())
	if err != nil {
		return err
	}
	defer a.Release()
	var buf []byte
	null := cells.Nulls(a)
	for i := range a.Len() {
		if null != nil && null(i) {
			continue
		}
		buf = cells.AppendCell(buf[:0], a, i)
		key := keyOf(buf)
		if seen[string(key)] {
			continue
		}
		if d.Cut = len(d.Entries) == maxEntries; d.Cut {
			return nil
		}
		seen[string(key)] = true
		d.Entries = append(d.Entries, cutTo(buf, maxKey))
	}
	return nil
}
