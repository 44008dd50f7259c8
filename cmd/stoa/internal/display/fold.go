package display

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// maxFolded is the maximum number of terminal lines for one value of a row.
const maxFolded = 8

// FoldRoom is the minimum width in cells of a column in which text is folded.
const FoldRoom = 18

// Folded breaks text into lines of at most width cells, after blanks and punctuation where possible. Text that exceeds
// maxLines lines (0: any number) is replaced by …. A width of 0 folds nothing.
func Folded(s string, width, maxLines int) []string {
	if width <= 0 || DisplayWidth(s) <= width {
		return []string{s}
	}
	var out []string
	for len(s) > 0 {
		if len(out) == maxLines-1 {
			return append(out, runewidth.Truncate(s, width, "…"))
		}
		n := lineEnd(s, width)
		out = append(out, strings.TrimRight(s[:n], " "))
		s = strings.TrimLeft(s[n:], " ")
	}
	return out
}

// Hanging breaks those lines of a message that are too long for the terminal between words, which remain whole so that
// they can be copied; continuation lines are indented. A width of 0 breaks nothing. A message that marks a place in the
// previous line with ^ is not broken.
func Hanging(s string, width int) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if i > 0 && strings.Trim(l, " ^") == "" {
			return s
		}
	}
	for i, l := range lines {
		if width > 0 && DisplayWidth(l) > width {
			lines[i] = hang(l, width)
		}
	}
	return strings.Join(lines, "\n")
}

func hang(l string, width int) string {
	lead := l[:len(l)-len(strings.TrimLeft(l, " "))]
	var b strings.Builder
	b.WriteString(lead)
	at := len(lead)
	for i, word := range strings.Split(l[len(lead):], " ") {
		switch n := DisplayWidth(word); {
		case i == 0:
			at += n
		case at+1+n > width:
			b.WriteString("\n" + lead + Gutter)
			at = len(lead) + len(Gutter) + n
		default:
			b.WriteByte(' ')
			at += 1 + n
		}
		b.WriteString(word)
	}
	return b.String()
}

// lineEnd returns how many bytes of s fit in width cells: up to and including the last punctuation in the line's second
// half, or else all that fit.
func lineEnd(s string, width int) int {
	at, end, mark := 0, 0, 0
	for i, r := range s {
		w := runewidth.RuneWidth(r)
		if at+w > width && i > 0 {
			if r == ' ' {
				return i
			}
			if mark > 0 {
				return mark
			}
			return end
		}
		at += w
		end = i + len(string(r))
		if at > width/2 && strings.ContainsRune(" ,;/", r) {
			mark = end
		}
	}
	return len(s)
}

// vertical shows rows that are too wide for the terminal as a block per row, with a line per column.
type vertical struct {
	names []string
	width int // of the terminal; 0 folds nothing
	label int // cells of the names
}

func NewVertical(names []string, width int) *vertical {
	u := &vertical{names: names, width: width}
	for _, n := range names {
		u.label = max(u.label, DisplayWidth(n))
	}
	if width > 0 {
		u.label = min(u.label, max(Narrowest, width/3))
	}
	return u
}

// Append appends one column of a row in at most maxLines lines. dim makes a name or null less bright.
func (u *vertical) Append(b []byte, k int, value string, maxLines int, dim func(string) string) []byte {
	name := runewidth.Truncate(u.names[k], u.label, "…")
	room := 0
	if u.width > 0 {
		room = max(Narrowest, u.width-u.label-len(Gutter))
	}
	for i, l := range Folded(value, room, maxLines) {
		if i == 0 {
			b = append(b, dim(name)...)
			b = Pad(b, u.label-DisplayWidth(name)+len(Gutter))
		} else {
			b = Pad(b, u.label+len(Gutter))
		}
		b = append(TrimRight(append(b, l...)), '\n')
	}
	return b
}

// Graded returns a message with its first word in the colour of a finding's severity, if it is one.
func Graded(s string, colour bool) string {
	word, rest, _ := strings.Cut(s, " ")
	code := ""
	switch word {
	case "error", "lost:":
		code = "31" // red
	case "warning":
		code = "33" // yellow
	case "note":
		code = "36" // cyan
	}
	if code == "" || !colour {
		return s
	}
	return "\x1b[" + code + "m" + word + "\x1b[0m " + rest
}
