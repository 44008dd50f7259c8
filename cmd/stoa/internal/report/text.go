package report

import (
	"bytes"
	"fmt"
	"strings"

	"stoa/cmd/stoa/internal/display"
)

// width is the maximum width of the text, unless a word is longer.
const width = 80

// Lines are a report as text.
type Lines struct{ bytes.Buffer }

// Line writes a text, folded, with a head in front of it.
func (b *Lines) Line(indent int, head, text string) {
	const wide = 16
	pad := strings.Repeat(" ", indent)
	if head != "" {
		pad += fmt.Sprintf("%-*s", wide, head)
	}
	for i, l := range folded(display.OneLine(text), width-len(pad)) {
		if i > 0 {
			pad = strings.Repeat(" ", len(pad))
		}
		b.WriteString(strings.TrimRight(pad+l, " ") + "\n")
	}
}

// folded breaks a text into lines of at most so many cells, between words, which remain whole so that paths and
// commands can be copied.
func folded(text string, cells int) (out []string) {
	line := ""
	for i, word := range strings.Split(text, " ") {
		switch {
		case i == 0:
			line = word
		case word != "" && display.DisplayWidth(line)+1+display.DisplayWidth(word) > cells:
			out, line = append(out, line), word
		default:
			line += " " + word
		}
	}
	return append(out, line)
}
