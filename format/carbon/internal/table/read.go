package table

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"sync/atomic"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// CheckReadable returns the error with which reading the table would fail, as far as that can be known without reading
// pages. It reads schema, tablestatus, update status, delete deltas, segment files, indexes and one data file of each
// segment. A change must not build on a table that readers refuse.
func (t *Managed) CheckReadable(ctx context.Context) error {
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
		for p, err := range t.Parts(ctx, format.Query{}) { // a data file may return the readers' error
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

// listings is how many times a table is listed that somebody changes meanwhile.
const listings = 8

// all finds the data files of all selected segments; later calls return the same result. If something is missing, and
// tablestatus was changed since it was read, it lists the table again.
func (t *Managed) all(ctx context.Context) ([]*Part, error) {
	t.once.Lock()
	defer t.once.Unlock()
	if t.found != nil {
		return t.list, nil
	}
	noted := len(t.Findings())
	for n := 1; ; n++ {
		if t.final && len(t.changes) > 0 { // the scan does not ask for them
			return nil, fmt.Errorf("%s %w while it was read: its first rows were deleted after it was opened", t.Status,
				store.ErrChanged)
		}
		unreadable, err := t.listSegments(ctx)
		if t.saved != nil || err == nil && len(unreadable) == 0 && len(t.Findings()) == noted {
			return t.list, err
		}
		switch changed, failed := t.readAgain(ctx); {
		case failed != nil:
			return nil, failed
		case !changed:
			return t.list, err
		case n == listings:
			t.found = nil
			return nil, fmt.Errorf("%s %w while it was read, %d times", t.Status, store.ErrChanged, n)
		}
		t.found, t.list, t.unreadable = nil, nil, nil
		if err := t.askedFor(ctx); err != nil {
			return nil, err
		}
		t.noting.Lock()
		t.Notes = t.Notes[:noted]
		t.noting.Unlock()
	}
}

// listSegments lists the data files of all selected segments.
func (t *Managed) listSegments(ctx context.Context) (unreadable map[string]error, err error) {
	found, list, unreadable := map[string]*Part{}, []*Part(nil), map[string]error{}
	if err := t.CheckWanted(); err != nil {
		return nil, err
	}
	for i := range t.Loads {
		l := &t.Loads[i]
		if !t.O.Wants(l) {
			continue
		}
		parts, h, err := t.SegmentContents(ctx, l)
		if err == nil && h.Unknown {
			err = t.others(ctx, l, parts)
		}
		if err != nil {
			if t.O.allSegments && !l.Counts() { // clean may already have removed its files
				continue
			}
			if !errors.Is(err, fault.Corrupt) {
				return nil, err
			}
			unreadable["segment "+l.Name] = err
			if m := (*unmatchedError)(nil); t.saved == nil && errors.As(err, &m) {
				continue // reading its files could make deleted rows reappear
			}
		}
		if err != nil && t.saved != nil {
			t.saved.Emit(layout.Findingf("carbon.segment.missing", fault.Span{Object: t.Status}, t.Path,
				"%v: the remaining files of segment %s are read", err, l.Name))
		}
		for k := range parts {
			p := &parts[k]
			if found[p.Name] == nil {
				found[p.Name] = p
				list = append(list, p)
			}
		}
	}
	if err := t.NoteCopies(ctx, list); err != nil {
		return nil, err
	}
	if err := t.vanished(ctx, unreadable); err != nil {
		return nil, err
	}
	if t.saved != nil { // it has been reported
		unreadable = nil
	}
	t.found, t.list, t.unreadable = found, list, unreadable
	return unreadable, nil
}

// vanished records the segments that lost their entry in tablestatus, unless options select segments. In recovery they
// are reported.
func (t *Managed) vanished(ctx context.Context, unreadable map[string]error) error {
	if t.O.allSegments || t.O.Segments != nil {
		return nil
	}
	gone, _, err := t.Unnamed(ctx)
	for i := range gone {
		err := t.VanishedError(ctx, &gone[i])
		if !errors.Is(err, fault.Corrupt) {
			return err
		}
		if unreadable["segment "+gone[i].Name] = err; t.saved != nil {
			t.saved.Emit(layout.Findingf("carbon.segment.vanished", fault.Span{Object: t.Status}, t.Path, "%v", err))
		}
	}
	return err
}

// others returns an error if the data files of a segment without index files belong to another segment, see
// CheckBounds. In recovery it reports the error and returns nil.
func (t *Managed) others(ctx context.Context, l *status.Load, parts []Part) error {
	err := t.CheckBounds(ctx, l, parts)
	switch {
	case err == nil:
		return nil
	case t.saved == nil:
		return &unmatchedError{err}
	}
	var e *fault.Error
	errors.As(err, &e)
	t.saved.Emit(layout.Findingf("carbon.segment.minmax", e.At, t.Path,
		"%v: the data files are read nevertheless; one may be another segment's", err))
	return nil
}

// CheckWanted returns Invalid if a segment that the options name does not exist.
func (t *Managed) CheckWanted() error {
	for _, s := range t.O.Segments {
		ok := false
		for i := range t.Loads {
			ok = ok || t.Loads[i].Name == s || t.Loads[i].SegmentID() == s
		}
		if !ok {
			return fault.Invalidf("%s has no segment %s", t.Path, s)
		}
	}
	return nil
}

// Parts is format.Reader.Parts: the data files, and a part for each segment whose files are missing or unknown. Listing
// the row groups of such a part is an error, so that a scan either ends there or skips the part and reports the loss.
func (t *Managed) Parts(ctx context.Context, _ format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		list, err := t.all(ctx)
		if err != nil {
			yield(format.Part{}, err)
			return
		}
		for _, name := range layout.SortedKeys(t.unreadable) { // first: under the default policy nothing is read then
			if !yield(format.Part{Ref: name, Rows: -1}, nil) {
				return
			}
		}
		for _, p := range list {
			if !yield(format.Part{Ref: p.Name, Stamp: p.stampText(t), Rows: p.rows, Bytes: p.bytes,
				Bucket: t.bucket(p.Name)}, nil) {
				return
			}
		}
	}
}

// bucket is format.Part.Bucket of a data file.
func (t *Managed) bucket(name string) int {
	if t.TableSchema.Buckets == 0 {
		return 0
	}
	return status.ParseFileName(name).Bucket + 1
}

// Missing returns the error of a part that stands for missing files.
func (t *Managed) Missing(ref string) error { return t.unreadable[ref] }

// stampText returns the stamp of a part: that of its file and, if rows of it are deleted, the name of the update
// status.
func (p *Part) stampText(t *Managed) string {
	s := p.stamp
	if p.Update != nil {
		s += " " + path.Base(t.Updates)
	}
	return s
}

// Part finds the part of a data file. If the file is missing, the error is that of the missing file; if it is not the
// table's, the error is Invalid.
func (t *Managed) Part(ctx context.Context, name string) (*Part, error) {
	if _, err := t.all(ctx); err != nil {
		return nil, err
	}
	if p := t.found[name]; p != nil {
		return p, nil
	}
	if err := t.unreadable[name]; err != nil {
		return nil, err
	}
	return nil, fault.Invalidf("%s is not a file of the table", name)
}

// RowGroups is format.Reader.RowGroups: a row group is a blocklet. With a filter, the index file suffices for planning.
func (t *Managed) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	mine, err := t.Part(ctx, p.Ref)
	if err != nil {
		return nil, err
	}
	if f := mine.fileFromIndex(); q.Filter != nil && f != nil {
		return t.groups(ctx, f, mine, q)
	}
	f, err := t.File(ctx, p.Ref)
	if err == nil && t.saved == nil { // in recovery the footer may be reconstructed
		err = checkRows(f, mine)
	}
	if err != nil {
		return nil, err
	}
	return t.groups(ctx, f, mine, q)
}

// Chunk is format.Reader.Chunk.
func (t *Managed) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	mine, err := t.Part(ctx, g.Part)
	if err != nil {
		return nil, err
	}
	if t.saved == nil && atomic.LoadInt32(&mine.agreed) == 0 { // the plan may be from the index alone
		f, err := t.File(ctx, g.Part)
		if err == nil {
			err = checkRows(f, mine)
		}
		if err != nil {
			return nil, err
		}
		atomic.StoreInt32(&mine.agreed, 1)
	}
	return t.chunk(ctx, g, mine, col, rows)
}

// reader returns t as a format.Reader, which is a format.Overlayer if rows are deleted.
func (t *Managed) reader() format.Reader {
	if (len(t.changes) > 0 || t.Guessed != nil) && !t.O.deleted {
		return withDeletes{t}
	}
	t.final = !t.O.deleted
	return t
}

// withDeletes is a table with deleted rows. It is a format.Overlayer.
type withDeletes struct{ *Managed }

// Overlay is format.Overlayer.Overlay: the deleted rows of a blocklet, nil if there are none.
func (t withDeletes) Overlay(ctx context.Context, g format.RowGroup, _ []int) (format.Overlay, error) {
	p, err := t.Part(ctx, g.Part)
	if err != nil || p.Update == nil {
		return nil, err
	}
	d, err := t.ReadDeletes(ctx, p.Update, path.Dir(p.Name))
	if err != nil || len(d) == 0 {
		return nil, err
	}
	f, err := t.File(ctx, g.Part)
	if err != nil {
		return nil, err
	}
	starts, err := f.PageStarts(ctx, g.Index)
	if err != nil {
		return nil, err
	}
	var deleted format.Drops
	for page := range len(starts) - 1 {
		for _, r := range d[PageKey{int64(g.Index), int64(page)}] {
			if r < 0 || r >= starts[page+1]-starts[page] {
				err := fault.Corruptf(fault.Span{Object: t.Updates},
					fmt.Sprintf("%s: blocklet %d, page %d", p.Update.Block, g.Index, page),
					"expected deleted rows below %d, found %d", starts[page+1]-starts[page], r)
				if t.saved == nil {
					return nil, err
				}
				t.note("carbon.delete.range", fault.Span{Object: p.Name},
					"%v: it is ignored, and a deleted row may come back", err)
				break
			}
			deleted = append(deleted, starts[page]+r)
		}
	}
	if len(deleted) == 0 {
		return nil, nil
	}
	return deleted, nil
}

// OfManaged returns the table that a reader reads; nil if it reads something else.
func OfManaged(r format.Reader) *Managed {
	switch r := r.(type) {
	case *Managed:
		return r
	case withDeletes:
		return r.Managed
	}
	return nil
}

// Foreign returns the Parquet files of the selected segments. Damage is not an error here: the part that stands for the
// segment will return it.
func (t *Managed) Foreign(ctx context.Context) (out []ForeignFile, err error) {
	for i := range t.Loads {
		l := &t.Loads[i]
		if !l.Parquet() || !t.O.Wants(l) {
			continue
		}
		files, err := t.ForeignFiles(ctx, l)
		switch {
		case err == nil, t.saved != nil && errors.Is(err, fault.Corrupt):
			out = append(out, files...)
		case !errors.Is(err, fault.Corrupt) && (l.Counts() || !t.O.allSegments):
			return nil, err
		}
	}
	return out, nil
}
