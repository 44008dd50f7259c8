package pred

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"

	"stoa/fault"
)

// source is where in a predicate's text a test stands, in bytes. An Expr that was not made by Parse has none.
type source struct {
	text       string
	column, op int
	values     []int
}

// The parts of a test that an error may be about; from 0 on they are its literals.
const (
	atColumn = -1
	atOp     = -2
)

// blame is err, about a part of the test, with the place that Parse's errors have. Without a text it is err.
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

// only is a source whose literals are those numbered.
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

// placed is an error about byte i of s, which shows the place.
func placed(s string, i int, format string, args ...any) error {
	return fault.Invalidf("%s%s", fmt.Sprintf(format, args...), show(s, i))
}

// show is the place of byte i of s, in numbers and with the line and a caret under its cell.
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

// visible shows control characters, and bytes that are not UTF-8, as one blank or mark each, so that the caret stands
// under its character.
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
