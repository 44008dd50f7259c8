// Package tables makes relations for DuckDB from what stoa reads: tables at addresses, and the output of verbs.
package tables

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/address"
	"stoa/pred"
	"stoa/region"
	"stoa/serve"
	"stoa/sql/duck"
	"stoa/store"
)

// Named are the named arguments of the function stoa.
var Named = []string{"at", "damaged", "filter", "format", "options"}

// Settings hold for every table unless its arguments override them.
type Settings struct {
	At      string      // a time, for formats with history
	Damaged string      // "", "fail", "skip-rows", "null-cells"
	Threads int         // workers per scan; at least 1
	Memory  int64       // bytes that a scan may hold, about; 0: no limit of its own
	Within  *serve.Tree // nothing else is read; nil: no such limit
}

// Ask is a table's address, and how to read it.
type Ask struct {
	Address string
	At, Damaged, Filter, Format,
	Options string // KEY=VALUE, separated by commas
}

// AskOf returns what a call of the function stoa requests.
func AskOf(c duck.Call) Ask {
	return Ask{Address: c.Args[0], At: c.Named["at"], Damaged: c.Named["damaged"], Filter: c.Named["filter"],
		Format: c.Named["format"], Options: c.Named["options"]}
}

// Source is an open table, as requested.
type Source struct {
	Ask   Ask
	Table *stoa.Table
	Where *pred.Expr // of the argument filter; nil: none
	// Losses are what its scans skipped, under a damage policy.
	Losses []region.Loss
	Read   atomic.Int64 // rows from its scans
	Stored int64        // its rows, about; -1: unknown. Set by Relation
	// Timeless: a time was set for all tables, and this one's format knows no past.
	Timeless bool

	damaged stoa.Damaged
	set     *Settings
	mu      sync.Mutex
}

// Open opens a table.
func Open(ctx context.Context, ask Ask, set *Settings) (*Source, error) {
	s := &Source{Ask: ask, set: set}
	policy := ask.Damaged
	if policy == "" {
		policy = set.Damaged
	}
	switch policy {
	case "", "fail":
	case "skip-rows":
		s.damaged = stoa.SkipRows
	case "null-cells":
		s.damaged = stoa.NullCells
	default:
		return nil, fault.Invalidf("damaged: expected fail, skip-rows or null-cells, found %q", policy)
	}
	if ask.Filter != "" {
		var err error
		if s.Where, err = pred.Parse(ask.Filter); err != nil {
			return nil, err
		}
	}
	o, err := openOptions(ctx, ask, set)
	s.Timeless = set.At != "" && err == nil && o.Opts["at"] == ""
	if err != nil {
		return nil, err
	}
	s.Table, err = stoa.Open(ctx, ask.Address, o)
	if errors.Is(err, fault.Corrupt) && s.damaged != stoa.Fail { // as cat and head do
		o.Recover = true
		if t, again := stoa.Open(ctx, ask.Address, o); again == nil {
			s.Table, err = t, nil
		}
	}
	if err != nil {
		return nil, &stoa.OpenError{Err: err}
	}
	if s.Where != nil {
		if _, err := pred.Bind(s.Where, s.Table.Schema()); err != nil {
			s.Table.Close()
			return nil, err
		}
	}
	return s, nil
}

func openOptions(ctx context.Context, ask Ask, set *Settings) (stoa.OpenOptions, error) {
	o := stoa.OpenOptions{Formats: verbs.Formats(), From: ask.Format, Opts: map[string]string{}}
	if set.Within != nil {
		if err := set.Within.Check(ask.Address); err != nil {
			return o, err
		}
		if ask.Options != "" {
			return o, fault.Invalidf("options: an option may name a file, and only some places are read here")
		}
		o.Tree = set.Within
	}
	for _, kv := range strings.Split(ask.Options, ",") {
		if kv == "" {
			continue
		}
		k, v, ok := strings.Cut(kv, "=")
		if !ok {
			return o, fault.Invalidf("options: expected KEY=VALUE, found %q", kv)
		}
		o.Opts[strings.TrimSpace(k)] = v
	}
	switch {
	case ask.At != "":
		o.Opts["at"] = ask.At
	case set.At != "" && o.Opts["at"] == "" && knows(ctx, ask, o, "at"):
		o.Opts["at"] = set.At
	}
	return o, nil
}

// knows reports whether the format of the table at an address has a reading option.
func knows(ctx context.Context, ask Ask, o stoa.OpenOptions, key string) bool {
	name, _, _ := strings.Cut(ask.Address, "#")
	target, err := targetOf(ctx, o.Tree, name)
	if err != nil {
		return false
	}
	f, err := stoa.Probe(ctx, target, o)
	return err == nil && slices.ContainsFunc(f.ReadKeys, func(k format.OptionKey) bool { return k.Name == key })
}

// Exists reports whether there is a file or directory at an address.
func (s *Settings) Exists(ctx context.Context, name string) bool {
	if s.Within != nil {
		_, err := s.Within.Stat(ctx, name)
		return err == nil
	}
	target, err := targetOf(ctx, nil, name)
	if err != nil {
		return false
	}
	_, err = target.Tree.Stat(ctx, target.Name)
	return err == nil
}

func targetOf(ctx context.Context, within store.Tree, name string) (format.Target, error) {
	if within != nil {
		return format.Target{Tree: within, Name: name}, nil
	}
	names, tree, err := address.Place(ctx, nil, []string{name})
	if err != nil {
		return format.Target{}, err
	}
	if tree == nil {
		tree = store.Local{}
	}
	return format.Target{Tree: store.Roots(tree), Name: names[0]}, nil
}

// Close closes the table.
func (s *Source) Close() { s.Table.Close() }

func (s *Source) lose(l region.Loss) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Losses = region.Keep(s.Losses, l)
}

// Relation is the table for DuckDB, restricted to rows for which where is true (nil: all); if count is true, only their
// number is needed.
func (s *Source) Relation(ctx context.Context, where *pred.Expr, count bool) (*duck.Relation, error) {
	rows, err := s.Table.Rows(ctx)
	if err != nil {
		return nil, err
	}
	exact := rows >= 0 && s.Where == nil && s.damaged == stoa.Fail
	if rows < 0 {
		rows = s.estimate(ctx)
	}
	s.Stored = rows
	filter := pred.And(s.Where, where)
	r := &duck.Relation{Schema: s.Table.Schema(), Rows: rows, Threads: s.set.Threads, Count: count, Exact: exact}
	r.Scan = func(ctx context.Context, columns []int) iter.Seq2[arrow.RecordBatch, error] {
		return s.counted(s.scan(ctx, columns, filter))
	}
	return r, nil
}

// estimate estimates the rows of a table whose number is known only after reading: the stored ones; -1: unknown.
func (s *Source) estimate(ctx context.Context) int64 {
	e, err := s.Table.Explain(ctx, stoa.ScanSpec{Columns: []string{}}, false)
	if err != nil {
		return -1
	}
	for _, l := range e.Levels {
		if l.Level == format.LevelRows {
			return l.Considered
		}
	}
	return -1
}

// few is the number of rows that one worker reads before a second one could have started.
const few = 1 << 17

// pool holds the batches of all scans.
var pool = stoa.NewPool()

// Spec returns the scan of some columns, by their positions.
func (s *Source) Spec(columns []int, filter *pred.Expr) stoa.ScanSpec {
	fields := s.Table.Schema().Fields()
	spec := stoa.ScanSpec{Columns: []string{}, Filter: filter, Damaged: s.damaged, Lost: s.lose, Alloc: pool,
		Memory: s.set.Memory, Parallel: s.set.Threads}
	for _, c := range columns {
		spec.Columns = append(spec.Columns, pred.JoinPath(fields[c].Name))
	}
	spec.Loose = s.Where == nil // DuckDB filters again
	return spec
}

func (s *Source) scan(ctx context.Context, columns []int, filter *pred.Expr) iter.Seq2[arrow.RecordBatch, error] {
	spec := s.Spec(columns, filter)
	if n, err := s.Table.Rows(ctx); err == nil && n >= 0 && n <= few {
		spec.Parallel = 1
	}
	if !s.alike(columns) && (len(columns) > 0 || s.damaged == stoa.Fail) {
		return s.Table.Scan(ctx, spec)
	}
	// Read all: columns with equal names cannot be named, and rows that are only counted may be lost in any column.
	spec.Columns = nil
	return chosen(s.Table.Scan(ctx, spec), columns)
}

// counted counts the rows that pass.
func (s *Source) counted(all iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for b, err := range all {
			if err == nil {
				s.Read.Add(b.NumRows())
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// HasAlike reports whether columns have the same name.
func (s *Source) HasAlike() bool {
	all := make([]int, s.Table.Schema().NumFields())
	for i := range all {
		all[i] = i
	}
	return s.alike(all)
}

// alike reports whether the name of one of the columns occurs more than once.
func (s *Source) alike(columns []int) bool {
	fields := s.Table.Schema().Fields()
	for _, c := range columns {
		for i, f := range fields {
			if i != c && f.Name == fields[c].Name {
				return true
			}
		}
	}
	return false
}
