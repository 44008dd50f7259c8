package cluster

import (
	"context"
	"fmt"
	"slices"

	"stoa/format"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/table"
	"stoa/store"
)

// In a session, tables of the same directories are opened without reading superblocks, catalogue and containers again.
// Cached state is never modified: each table gets its own tablets.

// sharedKey identifies directories, and how they were opened.
type sharedKey struct {
	tree     any
	name     string
	layout   string
	noVerify bool
	limits   format.Limits
}

// opened returns the servers in tg and the tablets of the table that tg names. The servers are shared with the session
// if there is one and tg names a table. The caller has exclusive use of them until it calls done.
func opened(ctx context.Context, tg format.Target, o format.OpenOptions, ro table.Options) (s *Servers,
	ts []*table.Tablet, done func(), err error) {
	s, err = shared(ctx, tg, o, ro)
	if err != nil {
		return nil, nil, nil, err
	}
	s.mu.Lock()
	if ts, err = s.Pick(ctx, tg, ro.Tablet); err == nil && s.kept && !s.unchanged(ctx, ts) {
		s.mu.Unlock() // the directories have changed since the session read them
		if s, err = Open(ctx, tg, o, ro); err != nil {
			return nil, nil, nil, err
		}
		s.mu.Lock()
		ts, err = s.Pick(ctx, tg, ro.Tablet)
	}
	if err != nil {
		s.mu.Unlock()
		return nil, nil, nil, err
	}
	return s, bound(tg.Tree, ts), s.mu.Unlock, nil
}

// shared opens the servers in tg, or returns those that the session has.
func shared(ctx context.Context, tg format.Target, o format.OpenOptions, ro table.Options) (*Servers, error) {
	session := format.SessionOf(ctx)
	below, same := fs.Lasting(tg.Tree)
	if session == nil || same == nil || ro.Live || tg.Table == "" || o.Tracer != nil {
		return Open(ctx, tg, o, ro)
	}
	key := sharedKey{same, tg.Name, fmt.Sprintf("%q", ro.Layout), o.NoVerify, o.Limits}
	kept, ok := session.Load(key)
	if s, is := kept.(*Servers); ok && is {
		return s.view(ro), nil
	}
	inner := tg
	inner.Tree = below
	s, err := Open(ctx, inner, o, ro)
	if err != nil {
		return nil, err
	}
	s.Tables() // before others can see it
	session.Store(key, s)
	return s.view(ro), nil
}

// view is a copy of s for opening one table.
func (s *Servers) view(ro table.Options) *Servers {
	v := *s
	v.noWAL, v.kept = ro.NoWAL, true
	v.Findings = slices.Clip(v.Findings)
	return &v
}

// unchanged reports whether the superblocks of tablets have not been modified since they were read.
func (s *Servers) unchanged(ctx context.Context, ts []*table.Tablet) bool {
	for _, tb := range ts {
		for _, r := range tb.Replicas() {
			if info, err := r.FS.Tree.Stat(ctx, r.Object); err != nil || info.Stamp != r.FS.Stamps[r.ID] {
				return false
			}
		}
	}
	return true
}

// bound returns copies of tablets that are read through another tree.
func bound(tree store.Tree, ts []*table.Tablet) (out []*table.Tablet) {
	servers := map[*fs.FS]*fs.FS{}
	of := func(r table.Replica) table.Replica {
		f := servers[r.FS]
		if f == nil {
			f = r.FS.Bound(tree)
			servers[r.FS] = f
		}
		return table.Replica{FS: f, Tablet: r.Tablet}
	}
	for _, tb := range ts {
		x := &table.Tablet{Replica: of(tb.Replica), Findings: slices.Clip(tb.Findings)}
		for _, r := range tb.Others {
			x.Others = append(x.Others, of(r))
		}
		out = append(out, x)
	}
	return out
}
