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
	for i, l := range display.Folded(display.OneLine(text), width-len(pad), 0) {
		if i > 0 {
			pad = strings.Repeat(" ", len(pad))
		}
		b.WriteString(strings.TrimRight(pad+l, " ") + "\n")
	}
}
