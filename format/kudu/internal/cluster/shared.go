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

// keyOf returns the key under which the servers in tg are kept in the session of ctx; nil if they are not. A name that
// may mean any table is looked up again in a session that lasts, because a table may have appeared.
func keyOf(ctx context.Context, tg format.Target, o format.OpenOptions, ro table.Options) (key any, below store.Tree) {
	session := format.SessionOf(ctx)
	below, same := fs.Lasting(tg.Tree)
	if session == nil || same == nil || ro.Live || tg.Table == "" && !session.Brief() || o.Tracer != nil {
		return nil, nil
	}
	return sharedKey{same, tg.Name, fmt.Sprintf("%q", ro.Layout), o.NoVerify, o.Limits}, below
}

// shared opens the servers in tg, or returns those that the session has.
func shared(ctx context.Context, tg format.Target, o format.OpenOptions, ro table.Options) (*Servers, error) {
	key, below := keyOf(ctx, tg, o, ro)
	if key == nil {
		return Open(ctx, tg, o, ro)
	}
	session := format.SessionOf(ctx)
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

// OpenAnew is Open. In a brief session, which is that of one verification, what follows uses the same servers.
func OpenAnew(ctx context.Context, tg format.Target, o format.OpenOptions, ro table.Options) (*Servers, error) {
	s, err := Open(ctx, tg, o, ro)
	if key, _ := keyOf(ctx, tg, o, ro); err == nil && key != nil && format.SessionOf(ctx).Brief() {
		s.Tables()
		format.SessionOf(ctx).Store(key, s)
	}
	return s, err
}

// OpenAgain is Open after OpenAnew in a brief session.
func OpenAgain(ctx context.Context, tg format.Target, o format.OpenOptions, ro table.Options) (*Servers, error) {
	if key, _ := keyOf(ctx, tg, o, ro); key != nil && format.SessionOf(ctx).Brief() {
		if s, ok := format.SessionOf(ctx).Load(key); ok {
			return s.(*Servers), nil
		}
	}
	return Open(ctx, tg, o, ro)
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
