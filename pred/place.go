package pred

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"

	"stoa/fault"
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
	g.Reason += show(s.text, at)
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

// placed returns an error about byte i of s that shows the place.
func placed(s string, i int, format string, args ...any) error {
	return fault.Invalidf("%s%s", fmt.Sprintf(format, args...), show(s, i))
}

// show returns the place of byte i of s, in numbers and as the line with a caret below the byte's character.
func show(s string, i int) string {
	start := strings.LastIndexByte(s[:i], '\n') + 1
	line := s[start:]
	if n := strings.IndexByte(line, '\n'); n >= 0 {
		line = line[:n]
	}
	before, after := []rune(s[start:i]), []rune(line[i-start:])
	where := fmt.Sprintf("byte %d, column %d", i, len(before)+1)
	if n := strings.Count(s[:i], "\n"); n > 0 {
		where = fmt.Sprintf("byte %d, line %d, column %d", i, n+1, len(before)+1)
	}
	if len(before) > 60 {
		before = append([]rune("…"), before[len(before)-59:]...)
	}
	if len(after) > 60 {
		after = append(after[:59:59], '…')
	}
	shown := visible(before)
	return fmt.Sprintf(" (%s)\n  %s\n  %s^", where, shown+visible(after),
		strings.Repeat(" ", runewidth.StringWidth(shown)))
}

// visible replaces each control character by a blank, and each byte that is not UTF-8 by a mark, so that the caret is
// below its character.
func visible(rs []rune) string {
	out := make([]rune, len(rs))
	for i, r := range rs {
		if unicode.IsControl(r) {
			r = ' '
		}
		out[i] = r
	}
	return string(out)
}
