package browse

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/gdamore/tcell/v2"
	"github.com/mattn/go-runewidth"

	"stoa/cmd/stoa/internal/display"
)

// rect is a part of the screen.
type rect struct{ x, y, w, h int }

// style is how text looks.
type style int

const (
	plain style = iota
	dim
	strong
	bad
	head
	chosen
)

// look returns the attributes of a style. None says by colour alone what its text does not say.
func (b *browser) look(s style) tcell.Style {
	st := tcell.StyleDefault
	switch s {
	case dim:
		return st.Dim(true)
	case strong:
		return st.Bold(true)
	case head:
		return st.Bold(true).Underline(true)
	case chosen:
		return st.Reverse(true)
	case bad:
		if b.colours {
			return st.Foreground(tcell.ColorRed)
		}
		return st.Bold(true)
	}
	return st
}

// put writes text from a column of a line on, at most w cells of it, and returns how many it used. It is the only
// function that passes text to the terminal: what is not visible becomes an escape here.
func (b *browser) put(x, y, w int, text string, st tcell.Style) int {
	used, last := 0, -1
	var base rune
	var marks []rune // that combine with base
	for _, r := range visible(text) {
		n := runewidth.RuneWidth(r)
		switch {
		case n == 0 && len(marks) < maxMarks && last >= 0:
			marks = append(marks, r)
			b.screen.SetContent(x+last, y, base, marks, st)
			continue
		case n == 0:
			continue
		case used+n > w:
			if w > 0 { // something is left out
				b.screen.SetContent(x+w-1, y, '…', nil, st)
			}
			return w
		}
		b.screen.SetContent(x+used, y, r, nil, st)
		last, base, marks = used, r, nil
		used += n
	}
	return used
}

// maxMarks is how many combining marks a character keeps.
const maxMarks = 3

// visible returns text with an escape in place of everything that has no shape: controls, bytes that are not UTF-8,
// marks of direction, joiners.
func visible(text string) string {
	text = display.OneLine(text)
	shapeless := func(r rune) bool { return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) }
	if strings.IndexFunc(text, shapeless) < 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if shapeless(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// fill writes text and fills the rest of w cells.
func (b *browser) fill(x, y, w int, text string, st tcell.Style) {
	for i := b.put(x, y, w, text, st); i < w; i++ {
		b.screen.SetContent(x+i, y, ' ', nil, st)
	}
}

// right writes text at the right end of w cells.
func (b *browser) right(x, y, w int, text string, st tcell.Style) {
	n := min(w, runewidth.StringWidth(visible(text)))
	b.fill(x, y, w-n, "", st)
	b.fill(x+w-n, y, n, text, st)
}

// folded returns text as lines of at most w cells.
func folded(text string, w int) (lines []string) {
	for l := range strings.SplitSeq(text, "\n") {
		lines = append(lines, display.Folded(visible(l), max(1, w), 1000)...)
	}
	return lines
}

// column is a column of a grid.
type column struct {
	name  string
	right bool
	most  int // cells; 0: maxWidth
}

// cell is a cell of a grid.
type cell struct {
	text  string
	style style
}

const (
	maxWidth = 40 // cells of a column
	minWidth = 3
)

// grid is a table of any number of rows, of which those on the screen are asked for.
type grid struct {
	columns []column
	rows    int64
	gutter  bool // the numbers of the rows are shown
	cell    func(row int64, col int) cell

	row, top  int64 // the chosen row, and the first one on the screen
	left      int   // the first column on the screen
	height    int64 // rows on the screen
	lastShown int   // column
}

// key moves the choice. It reports whether the key was one of the grid's.
func (g *grid) key(ev *tcell.EventKey) bool {
	page := max(1, g.height-1)
	switch ev.Key() {
	case tcell.KeyUp:
		g.row--
	case tcell.KeyDown:
		g.row++
	case tcell.KeyPgUp:
		g.row -= page
	case tcell.KeyPgDn:
		g.row += page
	case tcell.KeyHome:
		g.row, g.left = 0, 0
	case tcell.KeyEnd:
		g.row = g.rows - 1
	case tcell.KeyLeft:
		g.left--
	case tcell.KeyRight:
		if g.lastShown < len(g.columns)-1 {
			g.left++
		}
	case tcell.KeyRune:
		switch ev.Rune() {
		case 'k':
			g.row--
		case 'j':
			g.row++
		case ' ':
			g.row += page
		default:
			return false
		}
	default:
		return false
	}
	g.left = max(0, min(g.left, len(g.columns)-1))
	g.settle()
	return true
}

// settle has the chosen row exist and be on the screen.
func (g *grid) settle() {
	g.row = max(0, min(g.row, g.rows-1))
	if g.row < g.top {
		g.top = g.row
	}
	if g.height > 0 && g.row >= g.top+g.height {
		g.top = g.row - g.height + 1
	}
	g.top = max(0, min(g.top, g.rows-g.height))
}

// draw draws the header and the rows.
func (g *grid) draw(b *browser, at rect) {
	g.height = int64(max(1, at.h-1))
	g.settle()
	end := min(g.rows, g.top+g.height)
	x := at.x
	if g.gutter {
		w := len(digits(end)) + 1
		b.fill(x, at.y, w, "", b.look(plain))
		for r := g.top; r < end; r++ {
			b.right(x, at.y+1+int(r-g.top), w-1, digits(r), b.look(dim))
		}
		x += w
	}
	for k := g.left; k < len(g.columns) && x < at.x+at.w; k++ {
		w := min(g.width(k, g.top, end), at.x+at.w-x)
		g.drawColumn(b, rect{x, at.y, w, at.h}, k, end)
		x += w + 1
		g.lastShown = k
		if x > at.x+at.w+1 { // it is cut
			g.lastShown = max(g.left, k-1)
		}
	}
	if g.row < end {
		b.reverse(at.x, at.y+1+int(g.row-g.top), at.w)
	}
}

func (g *grid) drawColumn(b *browser, at rect, k int, end int64) {
	c := g.columns[k]
	write := b.fill
	if c.right {
		write = b.right
	}
	write(at.x, at.y, at.w, c.name, b.look(head))
	for r := g.top; r < end; r++ {
		x := g.cell(r, k)
		write(at.x, at.y+1+int(r-g.top), at.w, x.text, b.look(x.style))
	}
}

// width is how many cells a column needs for the rows on the screen.
func (g *grid) width(k int, from, to int64) int {
	most := g.columns[k].most
	if most == 0 {
		most = maxWidth
	}
	w := max(minWidth, runewidth.StringWidth(visible(g.columns[k].name)))
	for r := from; r < to && w < most; r++ {
		w = max(w, runewidth.StringWidth(visible(g.cell(r, k).text)))
	}
	return min(w, most)
}

// prompt is a line that the user types.
type prompt struct {
	label string
	text  []rune
	at    int
	error string // about the text
	mark  int    // where in the text it is wrong, in cells; -1: not known
	done  func(text string)
}

// maxPrompt is how many characters a line may have.
const maxPrompt = 4000

// prompt asks for a line.
func (b *browser) prompt(label, text string, done func(string)) {
	b.asks = &prompt{label: label, text: []rune(text), at: len([]rune(text)), mark: -1, done: done}
}

func (p *prompt) key(b *browser, ev *tcell.EventKey) {
	switch ev.Key() {
	case tcell.KeyEscape:
		b.asks = nil
	case tcell.KeyEnter:
		b.asks = nil
		p.done(string(p.text))
	case tcell.KeyLeft:
		p.at = max(0, p.at-1)
	case tcell.KeyRight:
		p.at = min(len(p.text), p.at+1)
	case tcell.KeyHome, tcell.KeyCtrlA:
		p.at = 0
	case tcell.KeyEnd, tcell.KeyCtrlE:
		p.at = len(p.text)
	case tcell.KeyCtrlU:
		p.text, p.at = p.text[p.at:], 0
	case tcell.KeyBackspace, tcell.KeyBackspace2:
		if p.at > 0 {
			p.text = append(p.text[:p.at-1], p.text[p.at:]...)
			p.at--
		}
	case tcell.KeyDelete:
		if p.at < len(p.text) {
			p.text = append(p.text[:p.at], p.text[p.at+1:]...)
		}
	case tcell.KeyRune:
		if len(p.text) < maxPrompt {
			p.text = append(p.text[:p.at], append([]rune{ev.Rune()}, p.text[p.at:]...)...)
			p.at++
		}
	}
}

// draw draws the line, and below it what is wrong with it, with a mark where.
func (p *prompt) draw(b *browser, at rect) {
	n := b.put(at.x, at.y, at.w/2, p.label+" ", b.look(strong))
	room := max(1, at.w-n-1)
	skip := 0 // characters left of the screen
	for runewidth.StringWidth(visible(string(p.text[skip:p.at]))) > room {
		skip++
	}
	b.fill(at.x+n, at.y, at.w-n, string(p.text[skip:]), b.look(plain))
	b.screen.ShowCursor(at.x+n+runewidth.StringWidth(visible(string(p.text[skip:p.at]))), at.y)
	switch mark := n + p.mark - skip; {
	case p.error == "":
		b.fill(at.x, at.y+1, at.w, "Enter: do it  Esc: leave it", b.look(dim))
	case p.mark < 0 || mark >= at.w:
		b.fill(at.x, at.y+1, at.w, p.error, b.look(bad))
	case mark+2+runewidth.StringWidth(p.error) > at.w && len(p.error) < mark: // no room behind the mark
		b.fill(at.x, at.y+1, at.w, strings.Repeat(" ", max(0, mark-1-runewidth.StringWidth(p.error)))+p.error+" ^",
			b.look(bad))
	default:
		b.fill(at.x, at.y+1, at.w, strings.Repeat(" ", max(0, mark))+"^ "+p.error, b.look(bad))
	}
}
