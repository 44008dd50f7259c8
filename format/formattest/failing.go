package formattest

import (
	"context"
	"errors"

	"stoa/store"
)

// ErrSink is the error of a FailingSink.
var ErrSink = errors.New("the sink failed")

// FailingSink fails each operation after the first Left ones.
type FailingSink struct {
	store.Sink
	Left   int
	Failed bool
}

func (s *FailingSink) step() error {
	if s.Left--; s.Left < 0 {
		s.Failed = true
		return ErrSink
	}
	return nil
}

func (s *FailingSink) Create(ctx context.Context, name string) (store.Object, error) {
	if err := s.step(); err != nil {
		return nil, err
	}
	o, err := s.Sink.Create(ctx, name)
	return &failingObject{o, s}, err
}

func (s *FailingSink) Commit(ctx context.Context) error {
	if err := s.step(); err != nil {
		return err
	}
	return s.Sink.Commit(ctx)
}

type failingObject struct {
	store.Object
	s *FailingSink
}

func (o *failingObject) Write(p []byte) (int, error) {
	if err := o.s.step(); err != nil {
		return 0, err
	}
	return o.Object.Write(p)
}

func (o *failingObject) Close() error {
	if err := o.s.step(); err != nil {
		return err
	}
	return o.Object.Close()
}
