package table

import (
	"context"
	"errors"
	"iter"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/status"
	"stoa/region"
	"stoa/store"
)

// Segment is an entry of a table's status file: a load, or the result of compacting several loads.
type Segment = format.Segment

// Segments lists the loads of the table that tg names (a table's directory, or a table of a store), in the order of the
// status file. Options are those of Open. A place that is not such a table is Unsupported.
func Segments(ctx context.Context, tg format.Target, op format.OpenOptions) ([]Segment, error) {
	t, err := At(ctx, tg, op)
	if err != nil {
		return nil, err
	}
	var out []Segment
	for i := range t.Loads {
		if t.Loads[i].Cleaned() {
			continue
		}
		s, err := t.segment(ctx, &t.Loads[i])
		if err != nil {
			return nil, err
		}
		for _, l := range t.Loads { // compacted loads name the result, not the other way round
			if l.Merged == s.Name && l.Name != s.Name {
				s.Merged = append(s.Merged, l.Name)
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// At opens the table that tg names. A place that is no table is Unsupported.
func At(ctx context.Context, tg format.Target, op format.OpenOptions) (*Managed, error) {
	o, err := ParseOptions(op.Opts)
	if err != nil {
		return nil, err
	}
	tg, k, err := Resolve(ctx, tg, &o)
	if err != nil {
		return nil, err
	}
	if k != KindTable {
		return nil, fault.Unsupportedf(fault.Span{Object: tg.Name}, "", "not a table's directory: it has no segments")
	}
	return OpenManaged(ctx, tg.Tree, tg.Name, op, o, nil)
}

// segment describes a load by its entry and its files. Damage is part of the result; other errors are returned.
func (t *Managed) segment(ctx context.Context, l *status.Load) (Segment, error) {
	s := Segment{Name: l.Name, Status: l.Status, Read: t.O.Wants(l), MergedInto: l.Merged, Format: l.FileFormat,
		Path: l.Path, Files: -1, Rows: -1,
		Began: status.ParseTime(l.Start), Ended: status.ParseTime(l.Timestamp),
		Changed: status.ParseTime(l.ChangedAt()), Data: status.ParseCount(l.DataSize),
		Index: status.ParseCount(l.IndexSize)}
	if s.MergedInto == l.Name {
		s.MergedInto = ""
	}
	parts, err := t.segmentParts(ctx, l)
	switch {
	case err != nil && ctx.Err() != nil:
		return s, ctx.Err()
	case err != nil:
		if l.Counts() {
			s.Err = err
		}
		return s, nil
	}
	s.Files, s.Rows = len(parts), 0
	var data int64
	for i := range parts {
		data += parts[i].bytes
		if u := parts[i].Update; u != nil {
			s.Deleted += max(status.ParseCount(u.Deleted), 0)
		}
		if s.Rows >= 0 && parts[i].rows >= 0 {
			s.Rows += parts[i].rows
		} else {
			s.Rows = -1
		}
	}
	if s.Data < 0 {
		s.Data = data
	}
	return s, nil
}

// Read returns the paths of the data files and index files that a reader of the table opens. It returns nil if these
// are unknown because the table's status or schema cannot be read or a segment cannot be found.
func Read(ctx context.Context, tree store.Tree, dir string, op format.OpenOptions, o ReadOptions) map[string]bool {
	t, err := OpenManaged(ctx, tree, dir, op, o, nil)
	if err != nil {
		return nil
	}
	out := map[string]bool{}
	for i := range t.Loads {
		if !t.O.Wants(&t.Loads[i]) {
			continue
		}
		parts, h, err := t.SegmentContents(ctx, &t.Loads[i])
		if err != nil {
			return nil
		}
		for k := range parts {
			out[parts[k].Name] = true
		}
		for _, name := range h.IndexFiles {
			out[name] = true
		}
	}
	return out
}

// opener is format.Format.Open.
type opener func(ctx context.Context, tg format.Target, op format.OpenOptions) (format.Reader, error)

// Lister is format.Format.List: it lists the tables of a store, or the one table or file at a target; open opens them.
func Lister(open opener) func(context.Context, format.Target) iter.Seq2[format.Entry, error] {
	return func(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] { return list(ctx, tg, open) }
}

func list(ctx context.Context, tg format.Target, open opener) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		k, _, err := Look(ctx, tg)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		if k != KindStore || tg.Table != "" {
			e, err := entry(ctx, tg, "", open)
			yield(e, err)
			return
		}
		tables, err := StoreTables(ctx, tg.Tree, tg.Name)
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		for _, t := range tables {
			e, err := entry(ctx, format.Target{Tree: tg.Tree, Name: t.Dir, Limits: tg.Limits}, t.name, open)
			if fault.OverBudget(err) {
				yield(e, err)
				return
			}
			if err != nil { // a damaged table must not hide the others
				e = format.Entry{Table: t.name, Kind: "table", Rows: -1, Bytes: -1,
					Meta: []format.KeyValue{{Key: "error", Value: err.Error()}}}
				if errors.Is(err, fault.Corrupt) {
					e.Findings = []region.Finding{damageOf("carbon.read", err, t.Dir, t.name)}
				}
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// damageOf turns an error about the table name in directory dir into a finding.
func damageOf(code string, err error, dir, name string) region.Finding {
	at := fault.Span{Object: dir}
	if e := (*fault.Error)(nil); errors.As(err, &e) {
		at = e.At
	}
	return layout.Findingf(code, at, name, "%v", err)
}

// entry describes one table or file.
func entry(ctx context.Context, tg format.Target, name string, open opener) (format.Entry, error) {
	e := format.Entry{Table: name, Kind: "table", Rows: 0}
	r, err := open(ctx, tg, format.OpenOptions{Limits: tg.Limits})
	if err != nil {
		return e, err
	}
	defer r.Close()
	e.Meta = r.Meta()
	if k := ByName(tg.Name); k != KindNone {
		e.Kind = map[Kind]string{KindFile: "data file", KindIndex: "index file", KindMerged: "merged index file",
			KindDict:     "dictionary",
			KindDictMeta: "dictionary metadata", KindSort: "sort index"}[k]
	}
	for p, err := range r.Parts(ctx, format.Query{}) {
		if err != nil {
			return e, err
		}
		if m, ok := r.(interface{ Missing(ref string) error }); ok {
			if err := m.Missing(p.Ref); err != nil {
				e.Findings = append(e.Findings, damageOf("carbon.segment.missing", err, tg.Name, name))
			}
		}
		if e.Bytes += p.Bytes; e.Rows >= 0 && p.Rows >= 0 {
			e.Rows += p.Rows
		} else {
			e.Rows = -1
		}
	}
	if _, ok := r.(withDeletes); ok {
		e.Rows = -1 // known only after reading the deletes
	}
	if m := OfManaged(r); name != "" && m != nil && !m.elsewhere.Load() {
		e.Dirs = []string{tg.Name}
	}
	return e, nil
}
