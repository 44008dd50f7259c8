package stoa

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/internal/share"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// SplitVersion is the version of the encoding of a Split. A program reads only the version it knows.
const SplitVersion = 1

// Split is a part of a scan that another process can run: it has everything needed except the data. The splits of a
// scan, one after another, return the rows of the scan in order.
//
// A split is plain data and survives JSON. Reading a file that has changed since the split was planned is an error.
type Split struct {
	Version  int               `json:"stoa_split"`
	Plan     string            `json:"plan"` // the same for all splits of one scan, and unique to it
	N        int               `json:"n"`    // from 0
	Sources  []SplitSource     `json:"sources"`
	Opts     map[string]string `json:"opts,omitempty"` // OpenOptions.Opts
	NoVerify bool              `json:"no_verify,omitempty"`
	Columns  []string          `json:"columns"` // null = all
	Where    string            `json:"where,omitempty"`
	// Unordered is ScanSpec.Unordered.
	Unordered bool  `json:"unordered,omitempty"`
	Recovered bool  `json:"recovered,omitempty"` // OpenOptions.Recover
	Rows      int64 `json:"rows"`                // physical rows of the pieces, before any filter; -1: not known
	Bytes     int64 `json:"bytes"`               // stored, approximately

	// What metadata say about the rows. Readers of a split do not need it.
	Exact  bool                   `json:"exact"`            // Rows is how many rows the split yields
	Bounds map[string]SplitBounds `json:"bounds,omitempty"` // by top-level column
	Keys   map[string]pred.Value  `json:"keys,omitempty"`   // partition columns that have one value in all rows
	Bucket *int                   `json:"bucket,omitempty"` // of all rows, from 0
}

// SplitBounds is what is known about a column in a split.
type SplitBounds struct {
	Min *pred.Value `json:"min,omitempty"` // no value is less; absent: not known, or no value is there
	Max *pred.Value `json:"max,omitempty"` // no value is greater
	// Exact: Min and Max are values of the split's rows.
	Exact bool  `json:"exact"`
	Nulls int64 `json:"nulls"` // -1: not known
}

// PlanOptions are the options of PlanBy.
type PlanOptions struct {
	Target int64 // stored bytes of a split, about
	// Apart: rows of different partitions or buckets are in different splits, so that every split has Keys or Bucket.
	Apart  bool
	Sorted bool // rows of different parts (tablets, files) are in different splits; see Layout.Order
	// Here: the splits are only read by ScanSplit of the same table. Then its sources need no names by which another
	// process can open them, as several places read as one have none.
	Here bool
}

// Share is the N-th of Of parts, from 0; the zero value is everything. Several planners, each with a share, plan what
// one would: their splits, in the order of N, are those of the scan.
type Share = share.Share

// SplitSource is the part of one source that a split reads.
type SplitSource struct {
	URI    string       `json:"uri"`
	Format string       `json:"format"`
	Stamp  string       `json:"stamp,omitempty"`
	Pieces []scan.Piece `json:"pieces"`
}

// Plan divides Scan(spec) into splits of roughly target compressed bytes. Only metadata is read. Row groups whose keys
// overlap, and those with an unknown number of rows, are not divided, however large they are. It refuses Rows and
// Limit.
func (t *Table) Plan(ctx context.Context, spec ScanSpec, target int64) iter.Seq2[Split, error] {
	return t.PlanBy(ctx, spec, PlanOptions{Target: target})
}

// PlanBy is Plan with more options.
func (t *Table) PlanBy(ctx context.Context, spec ScanSpec, o PlanOptions) iter.Seq2[Split, error] {
	return func(yield func(Split, error) bool) {
		if err := t.checkPlan(spec, o.Here); err != nil {
			yield(Split{}, err)
			return
		}
		blank := t.emptySplit(spec)
		c := scan.Packer{Target: o.Target, Apart: o.Apart, Single: o.Sorted, Yield: func(p scan.Pack) bool {
			s := t.splitOf(blank, p)
			blank.N++
			return yield(s, nil)
		}}
		for i, s := range t.sources {
			if s.share == share.Nobodys {
				continue
			}
			more, err := t.cut(ctx, &c, i, s, spec)
			if err != nil {
				yield(Split{}, err)
			}
			if err != nil || !more {
				return
			}
		}
		c.Flush()
	}
}

// cut packs the pieces of the i-th source. It returns false if no more are wanted.
func (t *Table) cut(ctx context.Context, c *scan.Packer, i int, s *source, spec ScanSpec) (more bool, err error) {
	in := s
	if s.reopen != nil {
		if in, err = s.reopen(ctx); err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, in.close()) }()
	}
	c.Partitions, c.Bucketed = format.LayoutOf(in.reader).Partitions, len(t.sources) == 1
	for p, err := range scan.Cut(ctx, in.scan, spec.internal(), c.Target, s.share) {
		if err != nil || !c.Add(i, p) {
			return false, err
		}
	}
	return true, nil
}

// splitOf returns the split of packed pieces.
func (t *Table) splitOf(s Split, p scan.Pack) Split {
	for i, piece := range p.Pieces {
		src := t.sources[p.Sources[i]]
		n := len(s.Sources)
		if n == 0 || s.Sources[n-1].URI != src.name {
			s.Sources = append(s.Sources, SplitSource{URI: src.name, Format: src.format.Name, Stamp: src.planned()})
			n++
		}
		s.Sources[n-1].Pieces = append(s.Sources[n-1].Pieces, piece)
	}
	s.Bytes, s.Rows, s.Exact, s.Keys, s.Bucket = p.Bytes, p.Rows, p.Exact, p.Keys, p.Bucket
	for name, b := range p.Bounds {
		if s.Bounds == nil {
			s.Bounds = map[string]SplitBounds{}
		}
		s.Bounds[name] = SplitBounds{Min: b.Min, Max: b.Max, Exact: b.Exact && b.Min != nil, Nulls: b.Nulls}
	}
	return s
}

func (t *Table) checkPlan(spec ScanSpec, here bool) error {
	if spec.Rows != (vec.Range{}) || spec.Limit != 0 {
		return fault.Invalidf("a plan has no rows by position and no limit")
	}
	if _, err := t.ScanSchema(spec); err != nil {
		return err
	}
	for _, s := range t.sources {
		if !here && (strings.HasPrefix(s.name, store.RootsMark+"#") || s.name == store.RootsMark) {
			return fault.Invalidf("a split names one place, and %s is several that are read as one: list "+
				"them in a file, and name that, %sFILE#TABLE", s.name, store.RootsMark)
		}
	}
	return nil
}

// PlanName returns Split.Plan of all splits that Plan(spec) yields, even if it yields none.
func (t *Table) PlanName(spec ScanSpec) string { return t.emptySplit(spec).Plan }

// emptySplit returns a split without pieces.
func (t *Table) emptySplit(spec ScanSpec) Split {
	b := Split{Version: SplitVersion, Opts: t.opened.opts(), NoVerify: t.opened.NoVerify, Columns: spec.Columns,
		Unordered: spec.Unordered, Recovered: t.opened.Recover}
	if spec.Filter != nil {
		b.Where = spec.Filter.String()
	}
	sum := sha256.New()
	text := json.NewEncoder(sum)
	text.Encode(b) // strings and numbers only: this cannot fail
	for _, s := range t.sources {
		text.Encode(SplitSource{URI: s.name, Format: s.format.Name, Stamp: s.planned()})
	}
	b.Plan = hex.EncodeToString(sum.Sum(nil)[:8])
	return b
}

// OpenSplit opens the tables of a split. It uses o.Formats, o.Limits and o.Tree; everything else is in the split.
// Columns, filter and rows are those of the plan: see SplitTable.Scan.
func OpenSplit(ctx context.Context, s Split, o OpenOptions) (*SplitTable, error) {
	if s.Version != SplitVersion {
		return nil, fault.Invalidf("the split is of version %d, this program reads version %d", s.Version, SplitVersion)
	}
	out := &SplitTable{split: s, spec: ScanSpec{Columns: s.Columns, Unordered: s.Unordered}}
	if s.Where != "" {
		var err error
		if out.spec.Filter, err = pred.Parse(s.Where); err != nil {
			return nil, err
		}
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	o.Typed, o.Opts, o.NoVerify, o.Recover = nil, s.Opts, s.NoVerify, s.Recovered
	for _, src := range s.Sources {
		o.From = src.Format
		t, err := Open(ctx, src.URI, o)
		if err == nil && len(t.sources) != 1 {
			err = fault.Invalidf("%s is more than one source", src.URI)
		}
		if err == nil && t.sources[0].planned() != src.Stamp {
			err = changedSince("the split was planned", src.URI, src.Stamp, t.sources[0].planned())
		}
		if t != nil {
			out.tables = append(out.tables, t)
		}
		if err != nil {
			out.Close()
			return nil, err
		}
	}
	return out, nil
}

// ScanSplit reads a split that t.Plan yielded, without opening anything again. Columns and order must be those of the
// planned spec; the filter may be narrower. Splits may be read in parallel. A split of another plan is an error of
// class Invalid.
func (t *Table) ScanSplit(ctx context.Context, s Split, spec ScanSpec) iter.Seq2[arrow.RecordBatch, error] {
	in := &SplitTable{split: s, spec: spec}
	for _, part := range s.Sources {
		i := slices.IndexFunc(t.sources, func(x *source) bool { return x.name == part.URI })
		if i < 0 || t.sources[i].planned() != part.Stamp {
			return func(yield func(arrow.RecordBatch, error) bool) {
				yield(nil, fault.Invalidf("the split is of another plan: %s", part.URI))
			}
		}
		in.tables = append(in.tables, &Table{sources: t.sources[i : i+1]})
	}
	return in.Scan(ctx, spec)
}

// check returns an error, with the field's name, if the split has values that Plan never produces: scanning it would
// read more or fewer rows than was meant.
func (s *Split) check() error {
	if len(s.Sources) == 0 {
		return fault.Invalidf("the split has no sources")
	}
	for i, src := range s.Sources {
		if len(src.Pieces) == 0 { // to the scan, no pieces means all
			return fault.New(fault.Invalid, fault.Span{}, fmt.Sprintf("sources[%d].pieces", i),
				"the split names no pieces of %s", src.URI)
		}
		for k, p := range src.Pieces {
			if err := p.Check(fmt.Sprintf("sources[%d].pieces[%d]", i, k)); err != nil {
				return err
			}
		}
	}
	return nil
}

// SplitTable is an open split.
type SplitTable struct {
	split  Split
	spec   ScanSpec
	tables []*Table
}

// Schema returns the schema of the batches.
func (s *SplitTable) Schema() (*arrow.Schema, error) {
	all := &Table{}
	for _, t := range s.tables {
		all.sources = append(all.sources, t.sources...)
	}
	return all.ScanSchema(s.spec)
}

// Findings returns what was noticed about the split's tables, as Table.Findings does; more may be added while rows are
// read.
func (s *SplitTable) Findings() (out []region.Finding) {
	for _, t := range s.tables {
		out = append(out, t.Findings()...)
	}
	return out
}

// Scan reads the split's rows. Columns, Filter, Unordered, Rows and Limit are the split's; the rest of spec applies.
func (s *SplitTable) Scan(ctx context.Context, spec ScanSpec) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		sc, err := s.Schema()
		if err != nil {
			yield(nil, err)
			return
		}
		spec.Columns, spec.Filter, spec.Unordered = s.spec.Columns, s.spec.Filter, s.spec.Unordered
		spec.Rows, spec.Limit, spec.Dictionaries = vec.Range{}, 0, DictionaryValues
		for i, t := range s.tables {
			in := spec.internal()
			in.Pieces = slices.Clone(s.split.Sources[i].Pieces)
			for b, err := range t.sources[0].run(ctx, in, nil) {
				if err != nil {
					yield(nil, err)
					return
				}
				if !yieldAs(sc, b, yield) {
					return
				}
			}
		}
	}
}

// Close closes the split's tables.
func (s *SplitTable) Close() error {
	var err error
	for _, t := range s.tables {
		err = errors.Join(err, t.Close())
	}
	return err
}
