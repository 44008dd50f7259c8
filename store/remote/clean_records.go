package remote

import (
	"context"
	"path"
	"slices"
	"strings"

	"stoa/internal/sorted"
	"stoa/store"
)

// records are the objects of a run that writes a large table: what it has finished, in a directory of its own within
// that of the table.
type records struct {
	dir   string   // of the table
	own   []Object // those of the run; the mark that it has begun comes last
	files []Object // of the table, as far as their names say that stoa wrote them
	shown bool     // the table can be read
}

// unrecorded removes what runs have left that wrote large tables: all of a table that cannot be read yet, and of one
// that can be read only what the run has recorded.
func (c *cleaner) unrecorded(ctx context.Context, all []Object) error {
	for _, r := range recordsIn(all) {
		gone := append(r.files, r.own...)
		if r.shown {
			gone = r.own
		}
		if slices.ContainsFunc(gone, func(o Object) bool { return o.Changed.IsZero() || !o.Changed.Before(c.before) }) {
			continue // a running process may have written it
		}
		lacks, used, err := c.lacks(ctx, r, all)
		if err != nil {
			return err
		}
		for _, o := range gone {
			l := Leftover{Name: c.r.addr + "/" + o.Key, Begun: o.Changed, Complete: r.shown}
			if path.Base(o.Key) == store.RecordsMark {
				l.Lacks, l.Used = lacks, used
			}
			if err := c.drop(ctx, o, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// lacks returns the address of what a table with records lacks to have the second catalogue that its mark names; "" if
// that is there, or there is none. used: there are other metadata than those of a new table.
func (c *cleaner) lacks(ctx context.Context, r *records, all []Object) (key string, used bool, err error) {
	i := slices.IndexFunc(r.own, func(o Object) bool { return path.Base(o.Key) == store.RecordsMark && o.Size > 0 })
	if !r.shown || i < 0 {
		return "", false, nil
	}
	there := map[string]Object{}
	for _, o := range all {
		there[o.Key] = o
		rel, below := strings.CutPrefix(o.Key, prefixOf(r.dir))
		used = used || below && shows(rel) && rel != "metadata/v1.metadata.json"
	}
	name := make([]byte, min(r.own[i].Size, maxMark))
	if hasLog(r.dir, there) {
		return "", false, nil
	}
	if err := c.r.requests.get(ctx, c.r.client, r.own[i], "", name, 0, nil); err != nil {
		return "", false, err
	}
	return c.r.addr + "/" + path.Join(r.dir, string(name)), used, nil
}

// recordsIn finds the directories with records, in the order of their names.
func recordsIn(all []Object) (out []*records) {
	by := map[string]*records{}
	for _, o := range all {
		in, base := path.Split(o.Key)
		if in = path.Clean(in); path.Base(in) != store.RecordsDir || base != store.RecordsMark &&
			path.Ext(base) != store.RecordExt {
			continue
		}
		dir := dirOf(in)
		if by[dir] == nil {
			by[dir] = &records{dir: dir}
			out = append(out, by[dir])
		}
		by[dir].own = append(by[dir].own, o)
	}
	for _, r := range out {
		sorted.StablyBy(r.own, func(a, b Object) int { // the mark tells what the records are
			return len(path.Ext(b.Key)) - len(path.Ext(a.Key))
		})
		for _, o := range all {
			rel, below := strings.CutPrefix(o.Key, prefixOf(r.dir))
			if !below {
				continue
			}
			r.shown = r.shown || shows(rel) && strings.Count(rel, "/") == 1
			if store.TableFile(rel) {
				r.files = append(r.files, o)
			}
		}
	}
	return out
}
