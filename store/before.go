package store

import "context"

// Before returns s with a check before the commit, if s is a Peeker: check is called with the results of Peek. If it
// fails, nothing is committed.
func Before(s Sink, check func(ctx context.Context, t Tree, name string) error) Sink {
	return &checkedSink{s, check}
}

type checkedSink struct {
	Sink
	check func(context.Context, Tree, string) error
}

func (s *checkedSink) Commit(ctx context.Context) error {
	if p, ok := s.Sink.(Peeker); ok {
		if t, name := p.Peek(); t != nil {
			if err := s.check(ctx, t, name); err != nil {
				return err
			}
		}
	}
	return s.Sink.Commit(ctx)
}

// Announced returns s with a call before the commit.
func Announced(s Sink, call func() error) Sink {
	if p, ok := s.(Peeker); ok {
		return struct {
			announcedSink
			Peeker
		}{announcedSink{s, call}, p}
	}
	return announcedSink{s, call}
}

type announcedSink struct {
	Sink
	call func() error
}

func (s announcedSink) Commit(ctx context.Context) error {
	if err := s.call(); err != nil {
		return err
	}
	return s.Sink.Commit(ctx)
}
