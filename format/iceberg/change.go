package iceberg

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/iceberg/internal/meta"
	"stoa/format/internal/lake"
	"stoa/store"
)

// Change is a snapshot that is being added to a table of version 2 or 3: some rows are deleted, by their positions, and
// others are added. Nothing is visible before the metadata that Close prepares are written.
type Change struct {
	op      *snapshotReader
	table   *lake.Table
	sink    store.Sink
	files   *lake.Writer
	deleted map[int][]int64 // by data file
	draft   *draft
	wo      format.WriteOptions

	promoted *meta.Schema // the new schema; nil: it stays
	widened  []string

	name string // of the new metadata
	json []byte // the new metadata
}

// OpenChange begins a change of the table in a directory. What it writes goes to sink, whose objects must not be
// visible to readers as a table; time is that of the snapshot in milliseconds since 1970, and 0 means now. If promote
// is not nil, columns get wider types where rows of this schema need them, and Iceberg promotes their types to these.
func OpenChange(ctx context.Context, tree store.Tree, dir string, sink store.Sink, wo format.WriteOptions,
	time int64, promote *arrow.Schema) (*Change, error) {
	op, err := openSnapshot(ctx, format.Target{Tree: tree, Name: dir}, format.OpenOptions{})
	if err != nil {
		return nil, err
	}
	at := fault.Span{Object: op.file}
	if v := op.table.FormatVersion; v != 2 && v != 3 {
		return nil, fault.Unsupportedf(at, "format-version", "expected 2 or 3, found %d: stoa changes no other tables",
			v)
	}
	if !strings.HasPrefix(path.Base(op.file), "v") {
		return nil, fault.Unsupportedf(at, "", "a catalogue has the newest metadata of this table, as others have "+
			"changed it since: stoa cannot commit to it, and catching up does not change it")
	}
	if err := op.ours(); err != nil {
		return nil, err
	}
	for _, d := range op.deletes {
		if d.Content != meta.PositionDeletes {
			return nil, fault.Unsupportedf(fault.Span{Object: d.name}, "content", "the table has equality deletes: "+
				"stoa does not change it")
		}
	}
	if _, err := distinct(op.fields); err != nil {
		return nil, err
	}
	c := &Change{op: op}
	if promote != nil {
		c.promoted, c.widened = op.promote(promote)
	}
	r, err := op.reader(ctx)
	if err != nil {
		return nil, err
	}
	c.table, c.sink, c.deleted, c.wo = r.(*lake.Table), sink, map[int][]int64{}, wo
	terms, err := op.terms(op.table.Spec(op.table.DefaultSpec))
	if err != nil {
		return nil, err
	}
	c.draft = &draft{o: createOptions{Table: Table{Time: time}}, stored: c.Schema(),
		version:  op.table.FormatVersion,
		location: strings.TrimRight(op.table.Location, "/"), terms: terms}
	return c, nil
}

// ours returns an error if others have changed the rows since stoa did so last: a change that gives the table the rows
// of its source would delete theirs. Snapshots of the operation replace only rearrange files, and do not count.
func (op *snapshotReader) ours() error {
	at := fault.Span{Object: op.file}
	s := op.snap
	line := map[int64]bool{}
	for range op.table.Snapshots {
		if s == nil {
			return op.unmoved(line, nil)
		}
		line[s.ID] = true
		by := s.Summary["engine-name"]
		if by == engine {
			return op.unmoved(line, s)
		}
		if operation := s.Summary["operation"]; operation != "replace" {
			return fault.Unsupportedf(at, "snapshots", "others have changed rows of the table since stoa did so last "+
				"(%s by %s): catching up would undo that, and does not change the table",
				cmp.Or(operation, "a snapshot"), cmp.Or(by, "an unknown engine"))
		}
		if s.Parent == nil {
			return op.unmoved(line, nil)
		}
		parent := *s.Parent
		if s = op.table.Snapshot(parent); s == nil {
			return fault.Unsupportedf(at, "snapshots", "snapshot %d has expired, so that it is not known whether "+
				"others have changed rows since stoa did so last: catching up may delete theirs, and does not change "+
				"the table", parent)
		}
	}
	if s != nil {
		return fault.Corruptf(at, "snapshots", "snapshot %d is among its own ancestors", s.ID)
	}
	return op.unmoved(line, nil)
}

// unmoved returns an error if others have made another snapshot the current one: a rollback adds no snapshot, and
// leaves a newer one beside the line of the current. line are the current snapshot and its ancestors back to the newest
// one by stoa, own, or to the first if none is by stoa. Newer ones elsewhere belong to other branches if main never had
// them.
func (op *snapshotReader) unmoved(line map[int64]bool, own *meta.Snapshot) error {
	t, at := op.table, fault.Span{Object: op.file}
	was, elsewhere := map[int64]bool{}, map[int64]bool{}
	for _, e := range t.SnapshotLog {
		was[e.ID] = true
	}
	for name, ref := range t.Refs {
		for s := t.Snapshot(ref.ID); name != "main" && s != nil && !elsewhere[s.ID]; {
			elsewhere[s.ID] = true
			if s.Parent == nil {
				break
			}
			s = t.Snapshot(*s.Parent)
		}
	}
	last := int64(0)
	if own != nil {
		last = own.Sequence
	}
	known := map[int64]bool{} // the sequence numbers after last
	for _, s := range t.Snapshots {
		branch := elsewhere[s.ID] && !was[s.ID] && s.Summary["engine-name"] != engine // stoa changes only main
		if (s.Sequence > last || own == nil) && !line[s.ID] && !branch {
			return fault.Unsupportedf(at, "current-snapshot-id", "others have made another snapshot the current "+
				"one: snapshot %d is newer, and is not part of the table's history any more, as after a rollback; "+
				"catching up would undo that, and does not change the table", s.ID)
		}
		if s.Sequence > last && s.Sequence <= t.LastSequence {
			known[s.Sequence] = true
		}
	}
	if int64(len(known)) < t.LastSequence-last {
		gone := last + 1
		for known[gone] {
			gone++
		}
		return fault.Unsupportedf(at, "last-sequence-number", "the snapshot of sequence number %d, which is newer "+
			"than the last one by stoa, has expired and is not known to be part of the table's history: others may "+
			"have rolled the table back; catching up may undo that, and does not change the table", gone)
	}
	return op.unlogged(line, own)
}

// unlogged returns an error if, after the newest snapshot by stoa, the log has a snapshot as the current one that is
// not an ancestor of the one that is current now. The log has what a table's snapshots do not have any more.
func (op *snapshotReader) unlogged(line map[int64]bool, own *meta.Snapshot) error {
	t := op.table
	log := t.SnapshotLog
	known := maps.Clone(line)
	if own != nil {
		for s := own; s != nil && s.Parent != nil && !known[*s.Parent]; s = t.Snapshot(*s.Parent) {
			known[*s.Parent] = true
		}
		if i := slices.IndexFunc(log, func(e meta.SnapshotEntry) bool { return e.ID == own.ID }); i >= 0 {
			for _, e := range log[:i] {
				known[e.ID] = true
			}
		}
	}
	for _, e := range log {
		if !known[e.ID] {
			return fault.Unsupportedf(fault.Span{Object: op.file}, "snapshot-log", "snapshot %d was the current one "+
				"after the last one by stoa, and is not part of the table's history any more, as after a rollback; "+
				"catching up would undo that, and does not change the table", e.ID)
		}
	}
	return nil
}

// terms returns the terms of a partition spec, bound to the columns of the table.
func (op *snapshotReader) terms(s *meta.Spec) ([]lake.Term, error) {
	if s == nil {
		return nil, fault.Corruptf(fault.Span{Object: op.file}, "partition-specs", "a spec is missing")
	}
	var out []lake.Term
	sc := arrow.NewSchema(op.fields, nil)
	for _, f := range s.Fields {
		name, n, bracket := strings.Cut(strings.TrimSuffix(f.Transform, "]"), "[")
		column := lake.QuoteColumn(op.fieldName(f.Source))
		text := name + "(" + column + ")"
		if bracket {
			text = name + "(" + n + ", " + column + ")"
		}
		one, err := lake.ParseSpec([]string{text})
		if err == nil {
			one, err = lake.Bind(one, sc)
		}
		if err != nil {
			return nil, err
		}
		one[0].Name = f.Name
		out = append(out, one...)
	}
	return out, nil
}

// Schema returns the columns of the table.
func (c *Change) Schema() *arrow.Schema { return c.table.Schema() }

// Rows calls yield with the rows of the table as it is. position returns the position of row i of the batch in its data
// file, for Delete.
func (c *Change) Rows(ctx context.Context, yield func(file int, position func(i int) int64, b arrow.RecordBatch) error,
) error {
	return c.table.Each(ctx, yield)
}

// Delete deletes the row at a position of a data file.
func (c *Change) Delete(file int, position int64) {
	c.deleted[file] = append(c.deleted[file], position)
}

// Deleted returns how many rows are deleted.
func (c *Change) Deleted() (n int64) {
	for _, rows := range c.deleted {
		n += int64(len(rows))
	}
	return n
}

// Write adds rows. Their columns are those of Schema, in types that can be stored as its types.
func (c *Change) Write(ctx context.Context, b arrow.RecordBatch) error {
	return c.writer(b).Write(ctx, b)
}

// Check returns an error if Write would refuse the rows.
func (c *Change) Check(b arrow.RecordBatch) error { return c.writer(b).Check(b) }

// writer returns the writer of rows such as those of b.
func (c *Change) writer(b arrow.RecordBatch) *lake.Writer {
	if c.files == nil {
		c.files = lake.NewWriter(c.sink, b.Schema(), c.draft.stored, lake.WriterOptions{Terms: c.draft.terms,
			Parquet: FileOptions(nil), Dir: dataDir, Write: c.wo, Commit: c.commit})
	}
	return c.files
}

// Close writes everything but the metadata, which it returns with the name of their file in the table's directory. The
// change is made when this file is there; there must be none of this name before.
func (c *Change) Close(ctx context.Context) (name string, metadata []byte, s format.Summary, err error) {
	if c.files != nil {
		s, err = c.files.Close(ctx)
	} else {
		s.Files, s.Bytes, err = c.commit(ctx, c.sink, nil)
		if err == nil {
			err = c.sink.Commit(ctx)
		}
	}
	return c.name, c.json, s, err
}

// Abort gives up the change.
func (c *Change) Abort(ctx context.Context) error {
	err := c.table.Close()
	if c.files != nil {
		return errors.Join(err, c.files.Abort(ctx))
	}
	return errors.Join(err, c.sink.Abort(ctx))
}
