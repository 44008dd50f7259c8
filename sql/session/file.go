package session

import (
	"context"
	"errors"

	"stoa/cmd/stoa/verbs"
)

// file is the file of -o after its rows were written and before it appears.
type file struct {
	end, drop func(context.Context) error
}

// onlyOne returns an error if the file of -o has the rows of another statement.
func (s *Session) onlyOne() error {
	if s.flags.ToFile() && s.shown {
		return verbs.WrongUsef("-o %s: several statements give rows; a file takes those of one", s.flags.File)
	}
	s.shown = true
	return nil
}

// end has the file of -o appear, or, after an error, not.
func (s *Session) end(ctx context.Context, err error) error {
	f := s.file
	s.file = nil
	switch {
	case f == nil:
		return err
	case err != nil:
		return errors.Join(err, f.drop(ctx))
	}
	return f.end(ctx)
}

// text writes a text to standard output or the file of -o.
func (s *Session) text(ctx context.Context, text string) error {
	if err := s.onlyOne(); err != nil {
		return err
	}
	p, err := s.app.Create(ctx, s.flags.Path())
	if err != nil {
		return err
	}
	if _, err := p.Write([]byte(text)); err != nil {
		return errors.Join(err, p.Abort(ctx))
	}
	if s.flags.ToFile() {
		s.file = &file{end: p.Commit, drop: p.Abort}
		return nil
	}
	return p.Commit(ctx)
}
