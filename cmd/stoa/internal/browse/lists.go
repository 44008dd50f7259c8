package browse

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gdamore/tcell/v2"

	"stoa/cmd/stoa/internal/display"
)

// columnStats are what stats says about a column.
type columnStats struct {
	Column   string   `json:"column"`
	Type     string   `json:"type"`
	Encoding string   `json:"encoding"`
	Codec    string   `json:"codec"`
	Rows     *int64   `json:"rows"`
	Nulls    *int64   `json:"nulls"`
	Stored   *int64   `json:"stored_bytes"`
	Share    *float64 `json:"share"`
	Min      any      `json:"min"`
	Max      any      `json:"max"`
}

// columns are the columns of a table: from its schema at once, and what reading all pages says when that is known.
type columns struct {
	table string
	grid  grid
	list  []columnStats
	known bool // also their sizes and values
}

func newColumns(table string) *columns {
	c := &columns{table: table}
	c.grid = grid{cell: c.cell, columns: []column{{"column", false, 30}, {"type", false, 20}, {"nulls", true, 0},
		{"bytes", true, 0}, {"share", true, 0}, {"encoding", false, 24}, {"codec", false, 0}, {"min", false, 30},
		{"max", false, 30}}}
	return c
}

func (c *columns) title() string            { return c.table + " · columns" }
func (c *columns) keys() string             { return "1 rows  3 structure  4 findings" }
func (c *columns) draw(b *browser, at rect) { c.grid.draw(b, at) }

func (c *columns) begin(b *browser) {
	if c.known {
		return
	}
	b.say(dim, "reading the pages …")
	type schema struct {
		Fields []struct {
			Name string `json:"name"`
			Type any    `json:"type"`
		} `json:"fields"`
	}
	ask(b, "command", values("verb", "schema", "name", c.table), func(a *answered[schema]) {
		if c.known {
			return
		}
		for _, f := range a.Doc.Fields {
			c.list = append(c.list, columnStats{Column: f.Name, Type: fmt.Sprint(f.Type)})
		}
		c.grid.rows = int64(len(c.list))
	})
	ask(b, "command", values("verb", "stats", "name", c.table), func(a *answered[[]columnStats]) {
		if len(a.Doc) > 0 {
			c.list, c.known, c.grid.rows = a.Doc, true, int64(len(a.Doc))
		}
		if len(a.Notes) > 0 || a.Status != 0 {
			b.say(bad, "%s", strings.Join(a.Notes, " "))
		} else {
			b.say(plain, "%s", display.Count(int64(len(c.list)), "column"))
		}
	})
}

func (c *columns) cell(row int64, col int) cell {
	s := c.list[row]
	if !c.known && col > 1 {
		return cell{"…", dim}
	}
	share := ""
	if s.Share != nil {
		share = fmt.Sprintf("%.1f %%", 100**s.Share)
	}
	return cell{[...]string{s.Column, s.Type, number(s.Nulls), bytesOf(s.Stored), share, s.Encoding, s.Codec,
		extreme(s.Min), extreme(s.Max)}[col], plain}
}

func extreme(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func (c *columns) key(b *browser, ev *tcell.EventKey) bool {
	switch v := tab(ev, c.table, 2); {
	case v != nil:
		b.replace(v)
	case ev.Key() == tcell.KeyEnter && c.grid.rows > 0:
		b.push(newText(c.list[c.grid.row].Column, c.all(c.grid.row)))
	default:
		return c.grid.key(ev)
	}
	return true
}

// all is everything known about a column.
func (c *columns) all(row int64) string {
	var out strings.Builder
	for k, h := range c.grid.columns {
		fmt.Fprintf(&out, "%-9s %s\n", h.name, visible(c.cell(row, k).text))
	}
	return out.String()
}

type ctx = context.Context

// finding is what verify found.
type finding struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Object   string `json:"object"`
	Offset   int64  `json:"offset"`
	Length   int64  `json:"length"`
	Path     string `json:"path"`
	Message  string `json:"message"`
	Column   string `json:"column"`
	From     *int64 `json:"from"`
	To       *int64 `json:"to"`
	Lost     *int64 `json:"lost"`

	// of the other lines of an answer:
	Read   int64    `json:"read"`
	Of     int64    `json:"of"`
	Status *int     `json:"status"`
	Notes  []string `json:"notes"`
}

// maxFindings is how many findings are shown.
const maxFindings = 100_000

// verify runs verify of a name, and passes on what it finds as it comes.
func verify(b *browser, name, depth string, each func(finding), fails func(error)) {
	b.work(func(ctx ctx) func() {
		err := b.client.lines(ctx, "verify", values("name", name, "depth", depth), func(line []byte) {
			var f finding
			if json.Unmarshal(line, &f) == nil {
				b.post(ctx, func() { each(f) })
			}
		})
		return func() {
			if err != nil {
				fails(err)
			}
		}
	})
}

// findings are what verify finds in a table.
type findings struct {
	table string
	deep  bool
	grid  grid
	list  []finding
	ended bool
}

func newFindings(table string) *findings {
	f := &findings{table: table}
	f.grid = grid{cell: f.cell, columns: []column{{"severity", false, 0}, {"code", false, 28}, {"offset", true, 0},
		{"rows", true, 0}, {"column", false, 16}, {"object", false, 30}, {"message", false, 200}}}
	return f
}

func (f *findings) title() string { return f.table + " · findings" }
func (f *findings) keys() string  { return "Enter there  d deep  1 rows  2 columns  3 structure" }
func (f *findings) draw(b *browser, at rect) {
	low := 4 // lines for the message of the chosen one
	if at.h < 12 || len(f.list) == 0 {
		low = 0
	}
	f.grid.draw(b, rect{at.x, at.y, at.w, at.h - low})
	if low > 0 {
		x := f.list[f.grid.row]
		lines := folded(x.Object+" ["+digits(x.Offset)+"+"+digits(x.Length)+"] "+x.Path+": "+x.Message, at.w)
		for i := range min(low, len(lines)) {
			b.fill(at.x, at.y+at.h-low+i, at.w, lines[i], b.look(plain))
		}
	}
}

func (f *findings) begin(b *browser) {
	if f.ended {
		f.tell(b, nil)
		return
	}
	depth := "sums"
	if f.deep {
		depth = "deep"
	}
	f.list, f.grid.rows, f.grid.row = nil, 0, 0
	b.say(dim, "verifying …")
	verify(b, f.table, depth, func(x finding) {
		switch {
		case x.Status != nil:
			f.ended = true
			f.tell(b, x.Notes)
		case x.Code == "" && x.Of > 0:
			b.say(dim, "verifying … %s of %s", display.BytesText(x.Read), display.BytesText(x.Of))
		case x.Code != "" && len(f.list) < maxFindings:
			f.list = append(f.list, x)
			f.grid.rows = int64(len(f.list))
		}
	}, b.fails)
}

func (f *findings) tell(b *browser, notes []string) {
	errors := 0
	for _, x := range f.list {
		if x.Severity == "error" {
			errors++
		}
	}
	switch {
	case errors > 0:
		b.say(bad, "damage: %s", display.Count(int64(errors), "error"))
	case len(f.list) == 0 && len(notes) > 0:
		b.say(plain, "%s", strings.Join(notes, " "))
	default:
		b.say(plain, "no damage found; %s", display.Count(int64(len(f.list)), "note"))
	}
}

func (f *findings) cell(row int64, col int) cell {
	x := f.list[row]
	span := ""
	if x.From != nil && x.To != nil {
		span = fmt.Sprintf("%d to %d", *x.From, *x.To-1)
	}
	text := [...]string{x.Severity, x.Code, digits(x.Offset), span, x.Column, x.Object, x.Message}[col]
	if col == 0 && x.Severity == "error" {
		return cell{text, bad}
	}
	return cell{text, plain}
}

func (f *findings) key(b *browser, ev *tcell.EventKey) bool {
	switch v := tab(ev, f.table, 4); {
	case v != nil:
		b.replace(v)
	case is(ev, 'd'):
		f.deep, f.ended = true, false
		b.change()
	case ev.Key() == tcell.KeyEnter && len(f.list) > 0:
		a := newAnatomy(f.list[f.grid.row].Object)
		a.goTo = f.list[f.grid.row].Offset
		b.push(a)
	default:
		return f.grid.key(ev)
	}
	return true
}
