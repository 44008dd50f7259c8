// Package syntax parses the text of a predicate to a tree of terms, and prints it. It does not know what columns there
// are, what literals mean and which functions and types exist.
package syntax

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"

	"stoa/fault"
)

// placed returns an error about byte i of s that shows the place.
func placed(s string, i int, format string, args ...any) error {
	return fault.Invalidf("%s%s", fmt.Sprintf(format, args...), Show(s, i))
}

// Show returns the place of byte i of s, in numbers and as the line with a caret below the byte's character.
func Show(s string, i int) string {
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
