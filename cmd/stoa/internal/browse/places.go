package browse

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/gdamore/tcell/v2"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
)

// answered is the answer to a verb of the command.
type answered[T any] struct {
	Status int      `json:"status"`
	Doc    T        `json:"doc"`
	Notes  []string `json:"notes"`
}

// entry is a table of a place.
type entry struct {
	Name    string `json:"name"`
	Format  string `json:"format"`
	Kind    string `json:"kind"`
	Rows    *int64 `json:"rows"`
	Bytes   *int64 `json:"bytes"`
	Columns *int64 `json:"columns"`
	Problem string `json:"problem"`
}

// tables are the tables of a place.
type tables struct {
	place string
	grid  grid
	list  []entry
}

// open shows a place, or the table that name is.
func (b *browser) open(place, name string) {
	b.push(newTables(place))
	if name != place {
		b.push(newRows(name))
	}
}

func newTables(place string) *tables {
	t := &tables{place: place}
	t.grid = grid{cell: t.cell, columns: []column{{"table", false, 44}, {"format", false, 0}, {"rows", true, 0},
		{"bytes", true, 0}, {"columns", true, 0}, {"problem", false, 60}}}
	return t
}

func (t *tables) title() string { return t.place }
func (t *tables) keys() string  { return "Enter rows  3 structure  4 findings  f files" }

func (t *tables) begin(b *browser) {
	if t.list != nil {
		return
	}
	b.say(dim, "looking for tables …")
	ask(b, "command", values("verb", "ls", "name", t.place), func(a *answered[[]entry]) {
		t.list, t.grid.rows = a.Doc, int64(len(a.Doc))
		problems := 0
		for _, e := range t.list {
			if e.Problem != "" {
				problems++
			}
		}
		switch {
		case len(t.list) == 0:
			b.say(bad, "%s", cmp.Or(strings.Join(a.Notes, " "), "there is no table"))
		case problems > 0:
			b.say(bad, "%s, %d with a problem", display.Count(int64(len(t.list)), "table"), problems)
		default:
			b.say(plain, "%s", display.Count(int64(len(t.list)), "table"))
		}
		if len(t.list) == 1 && t.list[0].Problem == "" && len(b.stack) == 1 {
			b.push(newRows(t.list[0].Name))
		}
	})
}

func (t *tables) cell(row int64, col int) cell {
	e := t.list[row]
	text := [...]string{e.Name, e.Format, number(e.Rows), bytesOf(e.Bytes), number(e.Columns), e.Problem}[col]
	if col == 5 || col == 0 && e.Problem != "" {
		return cell{text, bad}
	}
	return cell{text, plain}
}

func number(n *int64) string {
	if n == nil {
		return "?"
	}
	return digits(*n)
}

func digits(n int64) string { return strconv.FormatInt(n, 10) }

func bytesOf(n *int64) string {
	if n == nil {
		return "?"
	}
	return display.BytesText(*n)
}

func (t *tables) draw(b *browser, at rect) { t.grid.draw(b, at) }

func (t *tables) key(b *browser, ev *tcell.EventKey) bool {
	switch {
	case is(ev, 'f'):
		b.push(newFiles(t.place, ""))
	case t.grid.key(ev):
	case t.grid.rows == 0:
		return false
	case ev.Key() == tcell.KeyEnter && strings.HasSuffix(t.list[t.grid.row].Name, "/"): // a directory of tables
		b.push(newTables(strings.TrimSuffix(t.list[t.grid.row].Name, "/")))
	case ev.Key() == tcell.KeyEnter:
		b.push(newRows(t.list[t.grid.row].Name))
	default:
		if v := tab(ev, t.list[t.grid.row].Name, 0); v != nil {
			b.push(v)
			return true
		}
		return false
	}
	return true
}

// tab returns the view of a table that a key asks for; nil: none. now is the number of the one that is shown.
func tab(ev *tcell.EventKey, table string, now int) view {
	n := 0
	switch {
	case ev.Key() == tcell.KeyTab && now > 0:
		n = now%4 + 1
	case ev.Key() == tcell.KeyBacktab && now > 0:
		n = (now+2)%4 + 1
	case ev.Key() == tcell.KeyRune && ev.Rune() >= '1' && ev.Rune() <= '4':
		n = int(ev.Rune() - '0')
	}
	if n == now {
		return nil
	}
	switch n {
	case 1:
		return newRows(table)
	case 2:
		return newColumns(table)
	case 3:
		return newFiles(pathOf(table), table)
	case 4:
		return newFindings(table)
	}
	return nil
}

// pathOf returns the PATH of PATH#TABLE; of a path that exists, all of it.
func pathOf(name string) string {
	if place := cli.WithoutTable(name); place != "" {
		return place
	}
	return name
}

// text is lines to read.
type text struct {
	name, all string
	lines     []string
	top       int
	width, h  int
}

func newText(name, all string) *text { return &text{name: name, all: all} }

func (t *text) title() string    { return t.name }
func (t *text) keys() string     { return "arrows, page keys: scroll" }
func (t *text) begin(b *browser) {}

func (t *text) draw(b *browser, at rect) {
	if t.width != at.w {
		t.width, t.lines = at.w, folded(t.all, at.w)
	}
	t.h = at.h
	t.top = max(0, min(t.top, len(t.lines)-at.h))
	for i := 0; i < at.h && t.top+i < len(t.lines); i++ {
		b.fill(at.x, at.y+i, at.w, t.lines[t.top+i], b.look(plain))
	}
}

func (t *text) key(b *browser, ev *tcell.EventKey) bool {
	switch ev.Key() {
	case tcell.KeyUp:
		t.top--
	case tcell.KeyDown:
		t.top++
	case tcell.KeyPgUp:
		t.top -= t.h
	case tcell.KeyPgDn:
		t.top += t.h
	case tcell.KeyHome:
		t.top = 0
	case tcell.KeyEnd:
		t.top = len(t.lines)
	default:
		return false
	}
	t.top = max(0, t.top)
	return true
}

const keysText = `Everywhere
  arrows, PgUp, PgDn, Home, End   move
  Enter                           look into what is chosen
  Esc, Backspace, q               back; at the beginning, leave
  Ctrl-L                          draw the screen anew
  Ctrl-C                          leave

Of a table
  1 rows  2 columns  3 structure  4 findings     Tab: the next one

Rows
  /   only rows that pass a predicate, as --where has it; empty: all
  g   go to a row by its number
  r   cells as JSON, or formatted
  Enter   all columns of one row, one below the other

Structure: the line of letters is the file from its first byte to its last
  H header  F footer  M metadata  I index  D dictionary  P page  N nulls
  L levels  B filter  W log  C checksum  . hole  ? gap: nobody's  X damage
  Enter   into a structure, Esc out of it
  /   search: a name, a byte (0x1f4), a row (row 128), a column

Findings
  d   verify --deep: read and compare everything
  Enter   the structure at that place
`
