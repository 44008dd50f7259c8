package main

import (
	"sync"

	"stoa/fault"
)

// object is what a handle refers to.
type object interface {
	cancel() // ends its current work
	close()  // the last reference was released
}

type counted struct {
	object
	refs int
}

// handles are those that are not released. Numbers are never reused, so use of a released handle is detected.
var handles = struct {
	sync.Mutex
	last uint64
	of   map[uint64]*counted
}{of: map[uint64]*counted{}}

// newHandle makes a handle with one reference.
func newHandle(o object) uint64 {
	handles.Lock()
	defer handles.Unlock()
	handles.last++
	handles.of[handles.last] = &counted{o, 1}
	return handles.last
}

// held returns the object of a handle, with one more reference while the caller uses it; done releases that.
func held[T object](h uint64) (o T, done func(), err error) {
	handles.Lock()
	defer handles.Unlock()
	c := handles.of[h]
	if c == nil {
		return o, nil, fault.Invalidf("handle %d: it is released, or never was one", h)
	}
	o, ok := c.object.(T)
	if !ok {
		return o, nil, fault.Invalidf("handle %d: it is of another kind than this function takes", h)
	}
	c.refs++
	return o, func() { release(h) }, nil
}

func retain(h uint64) bool {
	handles.Lock()
	defer handles.Unlock()
	c := handles.of[h]
	if c != nil {
		c.refs++
	}
	return c != nil
}

func release(h uint64) bool {
	handles.Lock()
	c := handles.of[h]
	if c == nil {
		handles.Unlock()
		return false
	}
	c.refs--
	last := c.refs == 0
	if last {
		delete(handles.of, h)
	}
	handles.Unlock()
	if last {
		c.close()
	}
	return true
}

func handleCount() int64 {
	handles.Lock()
	defer handles.Unlock()
	return int64(len(handles.of))
}
