package carbon

import (
	"context"
	"errors"
	"path"
	"strings"

	"stoa/fault"
	"stoa/region"
)

// adoptIDs looks whether the schema is that of the data files: they name their columns by ids, and one that the schema never had is damage of either. If no file
// fits, it is the schema's: it takes the files' ids for its columns of the same name and type.
func (t *managed) adoptIDs(ctx context.Context) error {
	names, err := filesBelow(ctx, t.tree, t.path, maxPartitions)
	if err != nil {
		return err
	}
	strange, has := map[string]*column{}, map[string]bool{} // columns by ids that the schema does not know; all ids of the files
	for _, name := range names {
		f, err := openFile(ctx, t.tree, name, t.opts)
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return err
		}
		if err != nil {
			continue // told when it is read
		}
		if t.belongs(f) == nil {
			return nil
		}
		for _, r := range f.roots {
			if has[r.id] = true; !t.ids[r.id] {
				strange[r.id] = r
			}
		}
	}
	for _, id := range sorted(strange) {
		r := strange[id]
		for _, c := range t.roots {
			if strings.EqualFold(c.name, r.name) && c.typ == r.typ && !has[c.id] {
				at := fault.Span{Object: path.Join(t.path, "Metadata", "schema")}
				t.saved([]region.Finding{saying("carbon.schema.damaged", at, t.path, "column %s has the id %s, and in all data files %s: these are right", c.name, c.id, id)})
				c.id, t.ids[id], has[id] = id, true, true
				break
			}
		}
	}
	return nil
}
