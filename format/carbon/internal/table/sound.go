package table

import (
	"context"
	"path"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
)

// Sound is the error with which reading the table would end, as far as that shows without its pages: schema,
// tablestatus, update status, delete deltas, segment files, indexes and, of each segment, a data file. What a change
// would build on is seen with the eyes of who reads.
func (t *Managed) Sound(ctx context.Context) error {
	seen := map[string]bool{}
	look := func(p format.Part) error {
		_, err := t.RowGroups(ctx, p, format.Query{})
		return err
	}
	for p, err := range t.Parts(ctx, format.Query{}) {
		if err != nil {
			return err
		}
		if mine := t.found[p.Ref]; mine != nil {
			if mine.Update != nil {
				if _, err := t.ReadDeletes(ctx, mine.Update, path.Dir(mine.Name)); err != nil {
					return err
				}
			}
			if seen[mine.Segment] {
				continue
			}
			seen[mine.Segment] = true
		}
		if err := look(p); err != nil {
			return err
		}
	}
	for _, f := range t.Findings() {
		if f.Severity < region.Error {
			continue
		}
		for p, err := range t.Parts(ctx, format.Query{}) { // a data file may say it in the reader's words
			if err == nil {
				err = look(p)
			}
			if err != nil {
				return err
			}
		}
		return fault.Corruptf(f.At, "", "%s", f.Message)
	}
	return ctx.Err()
}
