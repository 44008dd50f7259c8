// Package address is how the functions of stoa that take names take addresses, too: see package store/remote.
package address

import (
	"context"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
	"stoa/store/remote"
)

// sessionTree is the key of a session's tree of addresses.
type sessionTree struct{}

// Place makes names of what is named, if tree is nil and there are addresses among it: these become names in a tree
// that reads from their stores. A tree lives as long as what is opened with it, or as long as a session: it does not
// notice what is new. Beside addresses, it has the machine's files only where some were named.
func Place(ctx context.Context, tree store.Tree, uris []string) ([]string, store.Tree, error) {
	var addresses int
	for _, uri := range uris {
		if remote.Is(uri) {
			addresses++
		}
	}
	if tree != nil || addresses == 0 {
		return uris, tree, nil
	}
	var below store.Tree
	if addresses < len(uris) {
		below = store.Local{}
	}
	stores := remote.New(below, remote.Options{})
	if s := format.SessionOf(ctx); s != nil && below == nil {
		if was, ok := s.Load(sessionTree{}); ok {
			stores = was.(*remote.Tree)
		} else {
			s.Store(sessionTree{}, stores)
		}
	}
	out := make([]string, len(uris))
	for i, uri := range uris {
		if out[i] = uri; !remote.Is(uri) {
			continue
		}
		var err error
		if out[i], err = stores.Enter(ctx, uri); err != nil {
			return nil, nil, err
		}
	}
	return out, stores, nil
}

// CheckChangeable returns an error if a name is an address: tables are not changed there in place.
func CheckChangeable(name string) error {
	if !remote.Is(name) {
		return nil
	}
	a, err := remote.Parse(name)
	if err != nil {
		return err
	}
	return fault.Unsupportedf(fault.Span{Object: a.Name()}, "", "no table is changed at an address")
}

// Sink is where a name is written: at its address, or on this machine, where replace says which directories may be.
func Sink(ctx context.Context, name string, replace func(dir string) bool) (store.Sink, error) {
	if !remote.Is(name) {
		return store.Local{}.Sink(name, replace), nil
	}
	return remote.New(nil, remote.Options{}).Sink(ctx, name, remote.SinkOptions{})
}

// Finding writes the address in a finding as addresses are given: names that were joined have one slash less.
func Finding(f region.Finding) region.Finding {
	f.At.Object, f.Part = remote.Shown(f.At.Object), remote.Shown(f.Part)
	return f
}
