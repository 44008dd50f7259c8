package display

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/mattn/go-runewidth"

	"stoa/internal/cells"
)

const (
	TableSample = 1000 // rows that determine the widths of the columns
	maxCell     = 4096 // bytes of a cell that are examined
	Narrowest   = 5    // cells to which a column can be squeezed
	readable    = 10   // cells at which a text is still useful
	readableNum = 24   // cells for a number, which is useless when it is cut
	Gutter      = "  "
)

// TableStyle is how a table is displayed.
type TableStyle struct {
	Width  int // 0: as wide as necessary
	Colour bool
	Layout Layout
}

// Layout is the arrangement of a table's rows.
type Layout int

const (
	Horizontal Layout = iota // a line per row
	Vertical                 // a block per row, a line per column
	AsFits                   // Horizontal if every column has room for something readable, else Vertical
)

// Table shows rows in columns. The first rows determine the widths; wider values later are cut on a terminal, and
// exceed their column elsewhere. A table that is too wide is shown with a block of lines for each row, as is one for
// which that was requested.
type Table struct {
	w       io.Writer
	Style   TableStyle
	names   []string
	types   []string
	right   []bool
	nested  []bool
	pending [][]cell  // until the widths are known
	widths  []int     // of the columns that are shown
	blocks  *vertical // used instead of lines if not nil
	shown   int64     // blocks shown
	rows    int64
	line    []byte
}

type cell struct {
	text string
	null bool
}

func NewTable(w io.Writer, sc *arrow.Schema, style TableStyle) *Table {
	t := &Table{w: w, Style: style}
	for _, f := range sc.Fields() {
		t.names = append(t.names, OneLine(f.Name))
		t.types = append(t.types, shortType(f.Type))
		t.right = append(t.right, numeric(f.Type))
		t.nested = append(t.nested, len(ChildFields(f.Type)) > 0)
	}
	return t
}

// numeric reports whether values of the type are right-aligned.
func numeric(t arrow.DataType) bool {
	id := t.ID()
	return arrow.IsInteger(id) || arrow.IsFloating(id) || arrow.IsDecimal(id)
}

// Write adds the rows of a batch.
func (t *Table) Write(b arrow.RecordBatch) error {
	var buf []byte
	for i := range int(b.NumRows()) {
		row := make([]cell, b.NumCols())
		for k, c := range b.Columns() {
			if c.IsNull(i) {
				row[k] = cell{"null", true}
				continue
			}
			buf = cells.AppendCell(buf[:0], c, i)
			row[k] = cell{text: cellText(buf)}
		}
		t.rows++
		if t.widths != nil {
			if err := t.print(row); err != nil {
				return err
			}
			continue
		}
		if t.pending = append(t.pending, row); len(t.pending) >= TableSample {
			if err := t.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// cellText returns a value on one line. Of a very long one it returns only the beginning.
func cellText(b []byte) string {
	if len(b) <= maxCell {
		return OneLine(string(b))
	}
	n := maxCell
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return OneLine(string(b[:n])) + "…"
}

// Close prints what is left, and the number of rows.
func (t *Table) Close() error {
	if err := t.Flush(); err != nil {
		return err
	}
	s := Count(t.rows, "row")
	if hidden := len(t.names) - len(t.widths); hidden > 0 {
		s += fmt.Sprintf(", %d of %s not shown: --columns chooses, -f vertical shows all", hidden,
			Count(int64(len(t.names)), "column"))
	}
	_, err := fmt.Fprintln(t.w, t.Dim("("+s+")"))
	return err
}

// Flush determines the widths and prints the heading and the pending rows.
func (t *Table) Flush() error {
	if t.widths != nil {
		return nil
	}
	natural := t.natural()
	if t.Style.Layout == Vertical || t.Style.Layout == AsFits && !t.readable(natural) {
		t.widths, t.blocks = natural, NewVertical(t.names, t.Style.Width)
		return t.flushPending()
	}
	t.widths = t.fit(natural)
	head, kind := make([]cell, len(t.names)), make([]cell, len(t.names))
	for k := range t.names {
		head[k], kind[k] = cell{text: t.names[k]}, cell{t.types[k], true}
	}
	if len(t.widths) > 0 {
		if err := t.print(head); err != nil {
			return err
		}
		if err := t.print(kind); err != nil {
			return err
		}
	}
	return t.flushPending()
}

func (t *Table) flushPending() error {
	for _, r := range t.pending {
		if err := t.print(r); err != nil {
			return err
		}
	}
	t.pending = nil
	return nil
}

// readable reports whether the columns fit such that each shows something readable.
func (t *Table) readable(natural []int) bool {
	if t.Style.Width <= 0 {
		return true
	}
	minimal := make([]int, len(natural))
	for k, n := range natural {
		minimal[k] = min(n, readable)
		if t.right[k] {
			minimal[k] = min(n, readableNum)
		}
		if t.nested[k] { // half of a nested value is useless
			minimal[k] = n
		}
	}
	return total(minimal) <= t.Style.Width
}

// natural returns the unconstrained widths of the columns.
func (t *Table) natural() []int {
	out := make([]int, len(t.names))
	for k := range out {
		out[k] = max(DisplayWidth(t.names[k]), DisplayWidth(t.types[k]))
	}
	for _, r := range t.pending {
		for k, c := range r {
			out[k] = max(out[k], DisplayWidth(c.text))
		}
	}
	return out
}

// fit squeezes the widest columns until all fit, and leaves out the last ones if even that is not enough.
func (t *Table) fit(w []int) []int {
	if t.Style.Width <= 0 {
		return w
	}
	maxColumns := max(1, (t.Style.Width+len(Gutter))/(Narrowest+len(Gutter)))
	if total(w) > t.Style.Width && len(w) > maxColumns {
		w = w[:minSum(w, t.Style.Width)]
	}
	for total(w) > t.Style.Width {
		wide := 0
		for k := range w {
			if w[k] > w[wide] {
				wide = k
			}
		}
		if w[wide] <= Narrowest {
			w = w[:max(1, len(w)-1)]
			if len(w) == 1 {
				w[0] = min(w[0], t.Style.Width)
			}
			continue
		}
		w[wide]--
	}
	return w
}

// minSum returns how many columns fit when each is squeezed to its minimum.
func minSum(w []int, width int) int {
	sum := -len(Gutter)
	for k, x := range w {
		if sum += min(x, Narrowest) + len(Gutter); sum > width {
			return max(1, k)
		}
	}
	return len(w)
}

func total(w []int) int {
	sum := len(Gutter) * (len(w) - 1)
	for _, x := range w {
		sum += x
	}
	return sum
}

// printBlock prints one row as a block of lines.
func (t *Table) printBlock(row []cell) error {
	t.shown++
	b := append(t.line[:0], t.Dim("── "+Thousands(t.shown)+" ──")...)
	b = append(b, '\n')
	for k, c := range row {
		if c.null {
			c.text = t.Dim(c.text)
		}
		b = t.blocks.Append(b, k, c.text, maxFolded, t.Dim)
	}
	t.line = b
	_, err := t.w.Write(b)
	return err
}

// print prints one row, or a line of the heading.
func (t *Table) print(row []cell) error {
	if t.blocks != nil {
		return t.printBlock(row)
	}
	b := t.line[:0]
	for k, width := range t.widths {
		c := row[k]
		s, n := c.text, DisplayWidth(c.text)
		if t.Style.Width > 0 && n > width {
			s = runewidth.Truncate(s, width, "…")
			n = DisplayWidth(s)
		}
		if k > 0 {
			b = append(b, Gutter...)
		}
		fill := max(0, width-n)
		if t.right[k] {
			b = Pad(b, fill)
		}
		if c.null {
			s = t.Dim(s)
		}
		b = append(b, s...)
		if !t.right[k] && k < len(t.widths)-1 {
			b = Pad(b, fill)
		}
	}
	t.line = append(TrimRight(b), '\n')
	_, err := t.w.Write(t.line)
	return err
}

func TrimRight(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == ' ' {
		b = b[:len(b)-1]
	}
	return b
}

func Pad(b []byte, n int) []byte {
	for range n {
		b = append(b, ' ')
	}
	return b
}

func (t *Table) Dim(s string) string {
	if !t.Style.Colour || s == "" {
		return s
	}
	return "\x1b[2m" + s + "\x1b[0m"
}

// shortType returns a short name of a type, for the second line of a table.
func shortType(t arrow.DataType) string {
	s := TypeName(t)
	if i := strings.IndexByte(s, '<'); i >= 0 {
		s = s[:i]
	}
	return s
}
