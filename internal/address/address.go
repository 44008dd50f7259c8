// Package address lets the functions of stoa that accept names accept addresses as well: see package store/remote.
package address

import (
	"context"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
	"stoa/store/remote"
)

// sessionTree is the key of a session's tree of addresses.
type sessionTree struct{}

// Place does nothing if tree is set or uris contains no address. Otherwise it turns uris into names in a tree that
// reads from the stores of the addresses. The tree lives as long as whatever is opened with it, or as long as a
// session, and does not notice new objects. Apart from addresses, it contains the machine's files only if some were
// named.
func Place(ctx context.Context, tree store.Tree, uris []string) ([]string, store.Tree, error) {
	var addresses int
	for _, uri := range uris {
		if remote.Is(uri) {
			addresses++
		} else if err := remote.Unknown(uri); err != nil && tree == nil {
			return nil, nil, err
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

// CheckMovable returns an error if a name is an address, because tables are not moved there.
func CheckMovable(name string) error {
	if !remote.Is(name) {
		return nil
	}
	a, err := remote.Parse(name)
	if err != nil {
		return err
	}
	return fault.Unsupportedf(fault.Span{Object: a.Name()}, "", "no table is renamed to an address")
}

// Sink returns the sink that writes to name: at its address, or on this machine, where replace reports which
// directories may be replaced.
func Sink(ctx context.Context, name string, replace func(dir string) bool) (store.Sink, error) {
	if !remote.Is(name) {
		return store.Local{}.Sink(name, replace), nil
	}
	return remote.New(nil, remote.Options{}).Sink(ctx, name, remote.SinkOptions{})
}

// Facts formats addresses among facts as Finding does.
func Facts(facts []format.KeyValue) []format.KeyValue {
	out := slices.Clone(facts)
	for i := range out {
		if remote.Is(out[i].Value) {
			out[i].Value = remote.Shown(out[i].Value)
		}
	}
	return out
}

// Losses returns a function that calls lost, which may be nil, with the addresses in a loss formatted as Finding does.
func Losses(lost func(region.Loss)) func(region.Loss) {
	if lost == nil {
		return nil
	}
	return showing(lost).lose
}

// showing is a method, not a closure, of which the compiler would make a dozen copies.
type showing func(region.Loss)

func (lost showing) lose(l region.Loss) {
	l.Part = remote.Shown(l.Part)
	if e, ok := l.Err.(*fault.Error); ok && remote.Is(e.At.Object) {
		shown := *e // other goroutines may read e
		shown.At.Object = remote.Shown(e.At.Object)
		l.Err = &shown
	}
	lost(l)
}

// Finding formats the addresses in a finding as users write them: joining names has removed a slash.
func Finding(f region.Finding) region.Finding {
	f.At.Object, f.Part = remote.Shown(f.At.Object), remote.Shown(f.Part)
	return f
}
