// Package faulty has a Tree and a Sink whose k-th operation misbehaves, for tests.
package faulty

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"stoa/store"
)

// Err is the error of an operation that fails on purpose.
var Err = errors.New("made to fail")

// Mode is how an operation misbehaves.
type Mode int

const (
	Fail  Mode = iota // fails with Err
	Short             // a read returns half of its bytes and io.EOF, as if the file had been truncated meanwhile
	Slow              // blocks until its context is done
	Wrong             // flips one bit in the middle of the bytes that a read returns
)

func (m Mode) String() string { return [...]string{"fail", "short", "slow", "wrong"}[m] }

// Tree misbehaves in operation At, counted from 0. Operations are Open, Stat, List and every ReadAt; those that read no
// bytes behave under Short and Wrong.
type Tree struct {
	store.Tree
	Mode Mode
	At   int64

	n   atomic.Int64
	Hit atomic.Bool // operation At took place
	Cut atomic.Bool // it was a read that returned half of its bytes
}

// Count returns how many operations took place.
func (t *Tree) Count() int64 { return t.n.Load() }

// bad counts an operation, and reports whether it is number At.
func (t *Tree) bad() bool {
	if t.n.Add(1)-1 != t.At {
		return false
	}
	t.Hit.Store(true)
	return true
}

// before misbehaves for an operation that reads no bytes.
func (t *Tree) before(ctx context.Context) error {
	if !t.bad() {
		return nil
	}
	switch t.Mode {
	case Fail:
		return Err
	case Slow:
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (t *Tree) Open(ctx context.Context, name string) (store.Source, error) {
	if err := t.before(ctx); err != nil {
		return nil, err
	}
	s, err := t.Tree.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return source{s, t}, nil
}

func (t *Tree) Stat(ctx context.Context, name string) (store.Info, error) {
	if err := t.before(ctx); err != nil {
		return store.Info{}, err
	}
	return t.Tree.Stat(ctx, name)
}

func (t *Tree) List(ctx context.Context, dir string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		if err := t.before(ctx); err != nil {
			yield(store.Info{}, err)
			return
		}
		t.Tree.List(ctx, dir)(yield)
	}
}

type source struct {
	store.Source
	t *Tree
}

func (s source) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if !s.t.bad() {
		return s.Source.ReadAt(ctx, p, off)
	}
	switch s.t.Mode {
	case Fail:
		return 0, Err
	case Slow:
		<-ctx.Done()
		return 0, ctx.Err()
	case Short:
		s.t.Cut.Store(true)
		n, err := s.Source.ReadAt(ctx, p[:len(p)/2], off)
		return n, errors.Join(err, io.EOF)
	}
	n, err := s.Source.ReadAt(ctx, p, off)
	if n > 0 {
		p[n/2] ^= 0x10
	}
	return n, err
}

// Sink is a disk that is full after a number of bytes: the write that would exceed it stores what fits and fails with
// Err, and so do all later ones. With Ops it also misbehaves in operation At, counted from 0: Create, Scratch, Commit,
// every Write and Close of an object, and every Write and ReadAt of a scratch file. In mode Short a Write stores half
// of its bytes and returns that number without an error; in mode Slow operations take Delay; in mode Wrong reads behave
// like a Tree's.
type Sink struct {
	store.Sink
	Left int64
	Full bool

	Ops   bool
	Mode  Mode
	At    int64
	Delay time.Duration

	n     atomic.Int64
	Reads atomic.Int64 // of scratch files
	Hit   atomic.Bool  // operation At took place, and misbehaved
}

// Count returns how many operations took place.
func (s *Sink) Count() int64 { return s.n.Load() }

// bad counts an operation, and reports whether it is the one that misbehaves; modes are those in which it can. In mode
// Slow it has already waited.
func (s *Sink) bad(modes ...Mode) bool {
	if n := s.n.Add(1) - 1; !s.Ops || n != s.At || !slices.Contains(modes, s.Mode) {
		return false
	}
	s.Hit.Store(true)
	if s.Mode == Slow {
		time.Sleep(s.Delay)
		return false
	}
	return true
}

func (s *Sink) Create(ctx context.Context, name string) (store.Object, error) {
	if s.bad(Fail, Slow) {
		return nil, Err
	}
	o, err := s.Sink.Create(ctx, name)
	if err != nil {
		return nil, err
	}
	return &object{o, s}, nil
}

func (s *Sink) Scratch(ctx context.Context) (store.Scratch, error) {
	if s.bad(Fail, Slow) {
		return nil, Err
	}
	f, err := s.Sink.Scratch(ctx)
	if err != nil {
		return nil, err
	}
	return &scratch{f, s}, nil
}

func (s *Sink) Commit(ctx context.Context) error {
	if s.bad(Fail, Slow) {
		return Err
	}
	return s.Sink.Commit(ctx)
}

// write writes as many bytes as still fit.
func (s *Sink) write(w io.Writer, b []byte) (int, error) {
	if s.bad(Fail, Short, Slow) {
		if s.Mode == Fail {
			return 0, Err
		}
		return w.Write(b[:len(b)/2])
	}
	if int64(len(b)) <= s.Left && !s.Full {
		n, err := w.Write(b)
		s.Left -= int64(n)
		return n, err
	}
	s.Full = true
	n, err := w.Write(b[:max(0, s.Left)])
	s.Left = 0
	return n, errors.Join(Err, err)
}

type object struct {
	store.Object
	s *Sink
}

func (o *object) Write(b []byte) (int, error) { return o.s.write(o.Object, b) }

func (o *object) Close() error {
	if o.s.bad(Fail, Slow) {
		return errors.Join(Err, o.Object.Close())
	}
	return o.Object.Close()
}

type scratch struct {
	store.Scratch
	s *Sink
}

func (c *scratch) Write(b []byte) (int, error) { return c.s.write(c.Scratch, b) }

func (c *scratch) ReadAt(p []byte, off int64) (int, error) {
	c.s.Reads.Add(1)
	if !c.s.bad(Fail, Short, Slow, Wrong) {
		return c.Scratch.ReadAt(p, off)
	}
	switch c.s.Mode {
	case Fail:
		return 0, Err
	case Short:
		n, err := c.Scratch.ReadAt(p[:len(p)/2], off)
		return n, errors.Join(err, io.EOF)
	}
	n, err := c.Scratch.ReadAt(p, off)
	if n > 0 {
		p[n/2] ^= 0x10
	}
	return n, err
}
