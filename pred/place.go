package pred

import (
	"errors"

	"stoa/fault"
	"stoa/pred/internal/syntax"
)

// source is where a test is in a predicate's text, in bytes. An Expr that was not made by Parse has none.
type source struct {
	text       string
	column, op int
	values     []int
}

// The parts of a test that an error may be about; the literals are numbered from 0.
const (
	atColumn = -1
	atOp     = -2
)

// blame returns err, which is about a part of the test, with its place in the text, as in errors of Parse. Without a
// source it returns err unchanged.
func (s *source) blame(part int, err error) error {
	var f *fault.Error
	if s == nil || !errors.As(err, &f) {
		return err
	}
	at := s.column
	switch {
	case part == atOp:
		at = s.op
	case part >= 0 && part < len(s.values):
		at = s.values[part]
	}
	g := *f
	g.Reason += syntax.Show(s.text, at)
	return &g
}

// only returns a source with only the numbered literals.
func (s *source) only(literals ...int) *source {
	if s == nil {
		return nil
	}
	out := *s
	out.values = nil
	for _, i := range literals {
		if i < len(s.values) {
			out.values = append(out.values, s.values[i])
		}
	}
	return &out
}

// sourceOf returns the place of a term.
func sourceOf(t *syntax.Term) *source { return &source{text: t.Text, column: t.At, op: t.At} }

// place returns err, which may be nil, with the place of t.
func place(t *syntax.Term, err error) error {
	if err == nil {
		return nil
	}
	return sourceOf(t).blame(atOp, err)
}
