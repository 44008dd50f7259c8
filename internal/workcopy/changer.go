package workcopy

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// short names, for the functions below
type (
	during = context.Context
	at     = format.TablePlace
)

// run calls a function of the format with the place of the copy, and makes visible what it did, unless it was a dry
// run.
func (c *Copy) run(ctx context.Context, p format.TablePlace, dry bool,
	do func(ctx during, p at) error) (err error) {
	if err := c.hold(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.release(ctx)) }()
	pub := &publisher{c: c, checked: true}
	if err := do(pub.with(ctx), c.local(p)); err != nil || dry {
		return c.shown(err)
	}
	return pub.Publish(ctx)
}

// Changer returns the functions of the format, made to work on the copy.
func (c *Copy) Changer() *format.Changer {
	out := c.change
	out.DisableDependents = nil
	c.wrapTable(&out)
	c.wrapRows(&out)
	c.wrapSegments(&out)
	c.wrapColumns(&out)
	return &out
}

// wrapTable wraps the functions about a whole table.
func (c *Copy) wrapTable(out *format.Changer) {
	out.Create = func(ctx context.Context, p format.TablePlace, sc *arrow.Schema, s format.TableSpec, dry bool) error {
		return c.run(ctx, p, dry, func(ctx during, p at) error {
			return c.change.Create(ctx, p, sc, s, dry)
		})
	}
	out.Drop = func(ctx context.Context, p format.TablePlace, dry bool) (d format.Dropped, err error) {
		err = c.run(ctx, p, dry, func(ctx during, p at) (err error) {
			d, err = c.change.Drop(ctx, p, dry)
			return err
		})
		d.Dir = c.place.Name()
		return d, err
	}
	out.Lock = func(ctx context.Context, p format.TablePlace) (func(), error) {
		if err := c.lock(ctx); err != nil {
			return nil, err
		}
		return func() { c.unlock(ctx) }, nil
	}
	out.Rename = func(context.Context, format.TablePlace, format.TablePlace, bool) error {
		return c.cannot("a table in a store is not renamed: copies of all its objects would take its place one by one")
	}
	out.AddSegment = func(context.Context, format.TablePlace, format.NewSegment, bool) (string, error) {
		return "", c.cannot("files of a store do not become a segment where they are: load them")
	}
	out.AddPartition = func(context.Context, format.TablePlace, format.PartitionValues, string, bool) (string, error) {
		return "", c.cannot("a partition without rows is an empty directory, which a store does not have; load makes " +
			"partitions")
	}
	out.Clean = func(ctx context.Context, p format.TablePlace, dry bool) (format.Cleaned, error) {
		return c.clean(ctx, p, dry)
	}
}

func (c *Copy) cannot(why string) error {
	return fault.Unsupportedf(fault.Span{Object: c.place.Name()}, "", "%s", why)
}

// clean removes only files that were written before p.Kept.
func (c *Copy) clean(ctx context.Context, p format.TablePlace, dry bool) (out format.Cleaned, err error) {
	err = c.run(ctx, p, dry, func(ctx during, p at) (err error) {
		c.mu.Lock()
		c.kept = p.Kept
		c.mu.Unlock()
		if out, err = c.change.Clean(ctx, p, dry); err != nil {
			return err
		}
		files := out.Files
		out.Files = nil
		for _, rel := range files {
			if o := c.at[rel]; c.young(rel, p.Kept) {
				out.Bytes -= o.Size
			} else {
				out.Files = append(out.Files, rel)
			}
		}
		return c.cleanProbes(ctx, p.Kept, dry, &out)
	})
	return out, err
}

// cleanProbes removes what killed writers have left of their tests of the store.
func (c *Copy) cleanProbes(ctx context.Context, kept time.Time, dry bool, out *format.Cleaned) error {
	for rel, o := range c.at {
		if !strings.HasPrefix(path.Base(rel), store.TempPrefix) || o.Changed.After(kept) {
			continue
		}
		out.Files, out.Bytes = append(out.Files, rel), out.Bytes+o.Size
		if dry {
			continue
		}
		if err := c.place.Remove(ctx, rel); err != nil {
			return err
		}
	}
	slices.Sort(out.Files)
	return nil
}

// wrapRows wraps the functions about rows and segments.
func (c *Copy) wrapRows(out *format.Changer) {
	own := &c.change
	out.Append = func(ctx context.Context, p format.TablePlace, sc *arrow.Schema, o format.LoadOptions) (format.Load,
		error) {
		return c.load(ctx, p, func(ctx during, p at) (format.Load, error) {
			return own.Append(ctx, p, sc, o)
		})
	}
	out.Compact = func(ctx context.Context, p format.TablePlace, sc *arrow.Schema, x format.Compaction, major bool) (
		format.Load, error) {
		return c.load(ctx, p, func(ctx during, p at) (format.Load, error) {
			return own.Compact(ctx, p, sc, x, major)
		})
	}
	out.CheckAppend = func(ctx context.Context, p format.TablePlace, sc *arrow.Schema, o format.LoadOptions) error {
		return c.run(ctx, p, true, func(ctx during, p at) error { return own.CheckAppend(ctx, p, sc, o) })
	}
	out.Misfits = func(ctx context.Context, p format.TablePlace, sc *arrow.Schema, o format.LoadOptions) (
		find func(b arrow.RecordBatch) []format.Misfit, err error) {
		err = c.run(ctx, p, true, func(ctx during, p at) (err error) {
			find, err = own.Misfits(ctx, p, sc, o)
			return err
		})
		return find, err
	}
	out.Alters = func(p at, sc *arrow.Schema, o format.LoadOptions) (all []format.Alteration, err error) {
		err = c.run(context.Background(), p, true, func(ctx during, p at) (err error) {
			all, err = own.Alters(p, sc, o)
			return err
		})
		return all, err
	}
	out.CheckText = func(p format.TablePlace, column, text string) error {
		return c.run(context.Background(), p, true, func(ctx during, p at) error {
			return own.CheckText(p, column, text)
		})
	}
}

// wrapSegments wraps the functions about rows that are there, and segments.
func (c *Copy) wrapSegments(out *format.Changer) {
	own := &c.change
	out.CheckDelete = func(ctx context.Context, p format.TablePlace, rows []format.RowsOfFile) error {
		return c.run(ctx, p, true, func(ctx during, p at) error {
			local, err := c.localRows(rows)
			if err != nil {
				return err
			}
			return own.CheckDelete(ctx, p, local)
		})
	}
	out.Delete = func(ctx context.Context, p format.TablePlace, rows []format.RowsOfFile, l format.Load) (n int64,
		err error) {
		return c.delete(ctx, p, rows, l)
	}
	out.DeleteSegments = func(ctx context.Context, p format.TablePlace, names []string, dry bool) error {
		return c.run(ctx, p, dry, func(ctx during, p at) error {
			return own.DeleteSegments(ctx, p, names, dry)
		})
	}
	out.Truncate = func(ctx context.Context, p format.TablePlace, dry bool) (names []string, err error) {
		err = c.run(ctx, p, dry, func(ctx during, p at) (err error) {
			names, err = own.Truncate(ctx, p, dry)
			return err
		})
		return names, err
	}
	out.DropPartition = func(ctx context.Context, p format.TablePlace, of format.PartitionValues, dry bool) (
		d format.DroppedPartitions, err error) {
		err = c.run(ctx, p, dry, func(ctx during, p at) (err error) {
			d, err = own.DropPartition(ctx, p, of, dry)
			return err
		})
		return d, err
	}
	out.PlanCompaction = func(p format.TablePlace, o format.CompactOptions) (plan []format.Compaction, err error) {
		err = c.run(context.Background(), p, true, func(ctx during, p at) (err error) {
			plan, err = own.PlanCompaction(p, o)
			return err
		})
		return plan, err
	}
	out.MergeIndexes = func(ctx context.Context, p format.TablePlace, segments []string, dry bool) (
		m format.IndexMerge, err error) {
		err = c.run(ctx, p, dry, func(ctx during, p at) (err error) {
			m, err = own.MergeIndexes(ctx, p, segments, dry)
			return err
		})
		return m, err
	}
}

// wrapColumns wraps the functions about the columns and properties.
func (c *Copy) wrapColumns(out *format.Changer) {
	own := &c.change
	out.AddColumn = func(ctx context.Context, p format.TablePlace, f arrow.Field, def *string, dry bool) error {
		return c.run(ctx, p, dry, func(ctx during, p at) error {
			return own.AddColumn(ctx, p, f, def, dry)
		})
	}
	out.DropColumn = func(ctx context.Context, p format.TablePlace, name string, dry bool) error {
		return c.run(ctx, p, dry, func(ctx during, p at) error {
			return own.DropColumn(ctx, p, name, dry)
		})
	}
	out.AlterColumn = func(ctx context.Context, p format.TablePlace, x format.ColumnChange, dry bool) error {
		return c.run(ctx, p, dry, func(ctx during, p at) error {
			return own.AlterColumn(ctx, p, x, dry)
		})
	}
	out.SetProperties = func(ctx context.Context, p format.TablePlace, props map[string]*string, dry bool) error {
		return c.run(ctx, p, dry, func(ctx during, p at) error {
			return own.SetProperties(ctx, p, props, dry)
		})
	}
}

// load is a load into the copy, which is kept until it ends.
type load struct {
	format.Load
	c       *Copy
	lenient bool
	once    sync.Once
}

// load begins a load. If no lock is held, it does not matter what others change meanwhile.
func (c *Copy) load(ctx context.Context, p format.TablePlace,
	begin func(ctx context.Context, p format.TablePlace) (format.Load, error)) (format.Load, error) {
	if err := c.hold(ctx); err != nil {
		return nil, err
	}
	l := &load{c: c, lenient: c.locks == 0}
	var err error
	if l.Load, err = begin((&publisher{c: c, lenient: l.lenient}).with(ctx), c.local(p)); err != nil {
		return nil, errors.Join(c.shown(err), c.release(ctx))
	}
	return l, nil
}

func (l *load) end(ctx context.Context) (err error) {
	l.once.Do(func() { err = l.c.release(ctx) })
	return err
}

func (l *load) Write(ctx context.Context, b arrow.RecordBatch) error {
	return l.c.shown(l.Load.Write(ctx, b))
}

func (l *load) Close(ctx context.Context) (format.LoadSummary, error) {
	pub := &publisher{c: l.c, lenient: l.lenient, checked: true}
	sum, err := l.Load.Close(pub.with(ctx))
	if err != nil {
		return sum, l.c.shown(err)
	}
	pub.lenient = false
	if err = pub.Publish(ctx); err == nil {
		err = l.end(ctx)
	}
	return sum, err
}

// Abort removes the files of the load and then its entry, whatever others have changed: files without an entry are
// damage. If the store may still carry out a write of the load, or does not remove a file, the entry stays, as after a
// writer that was killed: readers pass over the load, and the format's Clean removes it.
func (l *load) Abort(ctx context.Context) error {
	l.c.mu.Lock()
	err := l.c.removeLoose(context.WithoutCancel(ctx))
	pub := &publisher{c: l.c, lenient: true, mute: l.c.cut || err != nil}
	l.c.mu.Unlock()
	return errors.Join(err, l.c.shown(l.Load.Abort(pub.with(ctx))), l.end(ctx))
}

// localRows returns rows of files in the copy, which are named as the tree names them.
func (c *Copy) localRows(rows []format.RowsOfFile) ([]format.RowsOfFile, error) {
	local := make([]format.RowsOfFile, len(rows))
	for i, r := range rows {
		rel, in := tree{c}.name(r.File)
		if !in {
			return nil, c.cannot("the rows of " + r.File + ", which is outside of the table")
		}
		local[i] = format.RowsOfFile{File: c.path(rel), Rows: r.Rows}
	}
	return local, nil
}

// delete deletes rows of files, which are named as the tree names them.
func (c *Copy) delete(ctx context.Context, p format.TablePlace, rows []format.RowsOfFile, l format.Load) (n int64,
	err error) {
	own, _ := l.(*load)
	err = c.run(ctx, p, false, func(ctx during, p at) (err error) {
		local, err := c.localRows(rows)
		if err != nil {
			return err
		}
		if own == nil {
			n, err = c.change.Delete(ctx, p, local, nil)
		} else {
			n, err = c.change.Delete(ctx, p, local, own.Load)
		}
		return err
	})
	if err == nil && own != nil {
		err = own.end(ctx)
	}
	return n, err
}
