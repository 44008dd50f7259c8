package browse

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gdamore/tcell/v2"
	"github.com/mattn/go-runewidth"

	"stoa/cmd/stoa/internal/display"
)

// rowsAnswer is a window of rows.
type rowsAnswer struct {
	Columns []struct {
		Name string `json:"name"`
		Type string `json:"type"`
		Kind string `json:"kind"`
	} `json:"columns"`
	Total *int64      `json:"total"`
	From  int64       `json:"from"`
	Next  int64       `json:"next"`
	End   bool        `json:"end"`
	Rows  [][]*string `json:"rows"`
	At    []int64     `json:"at"`
	Lost  []struct {
		From   *int64 `json:"from"`
		To     *int64 `json:"to"`
		Where  string `json:"where"`
		Column string `json:"column"`
		Error  string `json:"error"`
	} `json:"lost"`
	LostMore  bool     `json:"lost_more"`
	Noticed   []string `json:"noticed"`
	Recovered bool     `json:"recovered"`
	Altered   []struct {
		Column string `json:"column"`
		Cells  int64  `json:"cells"`
	} `json:"altered"`
}

const (
	windowRows = 200
	maxKept    = 5000 // rows
	maxPassed  = 100_000
)

// rows are the rows of a table, or those that pass a filter.
type rows struct {
	table string
	where string
	raw   bool
	grid  grid
	types []string

	kept    map[int64][]*string   // by position; with a filter, by number; nil: the row cannot be read
	lost    map[string][][2]int64 // by column; "": all
	maybe   map[string]bool       // columns of which some cells are lost, and which ones is not known
	next    int64                 // with a filter: the position that was not looked at yet
	end     bool
	loading bool
	failed  bool // not asked again by itself
	wanted  int64
}

func newRows(table string) *rows {
	r := &rows{table: table}
	r.reset()
	return r
}

func (r *rows) reset() {
	r.kept, r.lost, r.maybe = map[int64][]*string{}, map[string][][2]int64{}, map[string]bool{}
	r.next, r.end, r.loading, r.failed, r.wanted = 0, false, false, false, -1
	columns := r.grid.columns
	r.grid = grid{cell: r.cell, gutter: r.where == "", columns: columns}
}

func (r *rows) title() string { return r.table + " · rows" }

func (r *rows) keys() string {
	return "/ filter  g go to  2 columns  3 structure  4 findings"
}

func (r *rows) begin(b *browser) {
	r.loading = false // an answer that was waited for was dropped
	if len(r.kept) == 0 {
		r.load(b, 0)
	} else {
		r.tell(b)
	}
}

// load asks for rows from a position on; with a filter, from where the last answer ended.
func (r *rows) load(b *browser, from int64) {
	if r.loading || r.failed {
		return
	}
	r.loading = true
	if r.where != "" {
		from = r.next
	}
	if len(r.kept) == 0 {
		b.say(dim, "reading …")
	}
	q := values("name", r.table, "from", digits(from), "n", strconv.Itoa(windowRows), "where", r.where,
		"raw", strconv.FormatBool(r.raw))
	kept := r.kept
	b.work(func(ctx ctx) func() {
		a := &rowsAnswer{}
		err := b.client.ask(ctx, "rows", q, a)
		return func() {
			if r.loading = false; len(kept) == 0 && len(r.kept) > 0 { // another filter meanwhile
				return
			}
			if err != nil {
				r.failed = true
				r.refuse(b, err)
				return
			}
			r.take(b, a)
		}
	})
}

// refuse shows an error; one of the filter in the filter, which is asked for again.
func (r *rows) refuse(b *browser, err error) {
	var p *problem
	if r.where == "" || !errors.As(err, &p) || p.Class != "invalid" {
		b.fails(err)
		return
	}
	r.filter(b)
	b.asks.error = strings.TrimPrefix(strings.SplitN(p.Message, "\n", 2)[0], "invalid: ")
	if p.At != nil && *p.At <= len(r.where) {
		before := strings.ToValidUTF8(r.where[:*p.At], "")
		b.asks.mark, b.asks.at = runewidth.StringWidth(visible(before)), utf8.RuneCountInString(before)
	}
}

func (r *rows) take(b *browser, a *rowsAnswer) {
	if r.types = r.types[:0]; len(a.Columns) > 0 {
		r.grid.columns = r.grid.columns[:0]
	}
	for _, c := range a.Columns {
		r.grid.columns = append(r.grid.columns, column{c.Name, c.Kind == "number", 0})
		r.types = append(r.types, c.Type)
	}
	if len(r.kept) > maxKept && r.where == "" {
		clear(r.kept)
	}
	r.keep(a)
	r.next, r.end = a.Next, a.End
	switch {
	case r.where != "":
		r.grid.rows = int64(len(r.kept))
		if r.grid.rows >= maxPassed {
			r.end = true
		}
	case a.Total != nil:
		r.grid.rows = *a.Total
	default:
		r.grid.rows = max(r.grid.rows, a.Next)
		if !a.End {
			r.grid.rows = max(r.grid.rows, a.Next+1)
		}
	}
	if r.wanted >= 0 {
		r.grid.row, r.wanted = r.wanted, -1
	}
	r.grid.settle()
	r.tell(b)
	if len(a.Lost) > 0 {
		b.say(bad, "damage: cells marked ✗ cannot be read: %s", a.Lost[0].Error)
	} else if len(a.Noticed) > 0 {
		b.say(bad, "damage: %s", a.Noticed[0])
	} else if a.Recovered {
		b.say(bad, "damage: the table could only be opened as recover does")
	} else if len(a.Altered) > 0 {
		b.say(bad, "column %s has strings that are not UTF-8: \uFFFD stands for each byte that is none",
			a.Altered[0].Column)
	}
}

// keep keeps the rows of an answer, and what is lost of them.
func (r *rows) keep(a *rowsAnswer) {
	for _, l := range a.Lost {
		if l.From == nil || l.To == nil || r.where != "" {
			r.maybe[l.Column] = true
		} else {
			r.lost[l.Column] = append(r.lost[l.Column], [2]int64{*l.From, *l.To})
		}
	}
	r.maybe[""] = r.maybe[""] || a.LostMore
	at := a.From
	if r.where != "" {
		at = int64(len(r.kept))
	} else {
		for k := a.From; k < a.Next; k++ {
			r.kept[k] = nil
		}
	}
	for i, row := range a.Rows {
		if i < len(a.At) {
			r.kept[a.At[i]] = row
		} else {
			r.kept[at+int64(i)] = row
		}
	}
}

func (r *rows) tell(b *browser) {
	what := display.Count(r.grid.rows, "row")
	if r.where != "" && !r.end {
		what += " so far, " + digits(r.next) + " looked at"
	}
	if r.where != "" {
		what += " where " + r.where
	}
	b.say(plain, "%s", what)
}

func (r *rows) cell(row int64, col int) cell {
	cells, ok := r.kept[row]
	switch {
	case !ok:
		return cell{"…", dim}
	case cells == nil:
		return cell{"✗", bad}
	case col >= len(cells):
		return cell{}
	case cells[col] != nil:
		return cell{*cells[col], plain}
	}
	return r.nullCell(row, r.grid.columns[col].name)
}

// nullCell shows a cell that has no value: it is null, or cannot be read, or which of the two is not known.
func (r *rows) nullCell(row int64, name string) cell {
	for _, of := range []string{name, ""} {
		for _, l := range r.lost[of] {
			if l[0] <= row && row < l[1] {
				return cell{"✗", bad}
			}
		}
	}
	if r.maybe[name] || r.maybe[""] {
		return cell{"null or ✗", bad}
	}
	return cell{"null", dim}
}

func (r *rows) draw(b *browser, at rect) {
	r.grid.draw(b, at)
	if r.where != "" {
		if !r.end && r.grid.top+2*r.grid.height > r.grid.rows {
			r.load(b, 0)
		}
		return
	}
	for row := r.grid.top; row < min(r.grid.rows, r.grid.top+r.grid.height); row++ {
		if _, ok := r.kept[row]; !ok {
			r.load(b, row)
			return
		}
	}
}

// filter asks for a predicate.
func (r *rows) filter(b *browser) {
	b.prompt("where", r.where, func(text string) {
		r.where = strings.TrimSpace(text)
		r.reset()
		b.change()
	})
}

func (r *rows) key(b *browser, ev *tcell.EventKey) bool {
	switch {
	case is(ev, '/'):
		r.filter(b)
	case is(ev, 'r'):
		r.raw = !r.raw
		row := r.grid.row
		r.reset()
		if r.where == "" {
			r.wanted = row
		}
		b.change()
	case is(ev, 'g'):
		b.prompt("row", "", func(text string) {
			n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			if err != nil || n < 0 || n >= r.grid.rows {
				b.say(bad, "%q is not the number of a row: there are 0 to %d", text, r.grid.rows-1)
				return
			}
			r.grid.row = n
			r.grid.settle()
		})
	case ev.Key() == tcell.KeyEnter && r.kept[r.grid.row] != nil:
		b.push(newRecord(r, r.grid.row))
	case r.grid.key(ev):
	default:
		if v := tab(ev, r.table, 1); v != nil {
			b.replace(v)
			return true
		}
		return false
	}
	return true
}

// record is one row, its columns one below the other.
type record struct {
	of    *rows
	row   int64
	cells []cell
	grid  grid
}

func newRecord(r *rows, row int64) *record {
	v := &record{of: r, row: row}
	for k := range r.grid.columns {
		v.cells = append(v.cells, r.cell(row, k))
	}
	v.grid = grid{columns: []column{{"column", false, 0}, {"type", false, 24}, {"value", false, 2000}},
		rows: int64(len(v.cells)), cell: func(i int64, col int) cell {
			return [...]cell{{r.grid.columns[i].name, plain}, {r.types[i], dim}, v.cells[i]}[col]
		}}
	return v
}

func (v *record) title() string            { return "row " + digits(v.row) }
func (v *record) keys() string             { return "Enter the whole value" }
func (v *record) begin(b *browser)         {}
func (v *record) draw(b *browser, at rect) { v.grid.draw(b, at) }
func (v *record) key(b *browser, ev *tcell.EventKey) bool {
	if ev.Key() == tcell.KeyEnter && v.grid.rows > 0 {
		b.push(newText(v.of.grid.columns[v.grid.row].name, v.cells[v.grid.row].text))
		return true
	}
	return v.grid.key(ev)
}
