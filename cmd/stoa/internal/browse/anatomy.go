package browse

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gdamore/tcell/v2"

	"stoa/cmd/stoa/internal/display"
)

// files are the files of a table or place, whose structure can be looked at.
type files struct {
	path, table string // table "": of a place
	grid        grid
	list        []file
}

type file struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

func newFiles(path, table string) *files {
	f := &files{path: path, table: table}
	f.grid = grid{columns: []column{{"file", false, 64}, {"bytes", true, 0}}, cell: func(row int64, col int) cell {
		return cell{[...]string{f.list[row].Name, display.BytesText(f.list[row].Size)}[col], plain}
	}}
	return f
}

func (f *files) title() string            { return cmp.Or(f.table, f.path) + " · files" }
func (f *files) keys() string             { return "Enter structure" }
func (f *files) draw(b *browser, at rect) { f.grid.draw(b, at) }

func (f *files) begin(b *browser) {
	if f.list != nil {
		return
	}
	type answer struct {
		Files []file `json:"files"`
		Cut   bool   `json:"cut"`
	}
	b.work(func(ctx ctx) func() {
		a := &answer{}
		err := b.client.ask(ctx, "files", values("name", f.path), a)
		return func() {
			if err != nil { // it is a file
				b.replace(newAnatomyOf(f.path, f.table))
				return
			}
			f.list, f.grid.rows = a.Files, int64(len(a.Files))
			b.say(plain, "%s", display.Count(f.grid.rows, "file"))
			if a.Cut {
				b.say(plain, "the first %s", display.Count(f.grid.rows, "file"))
			}
		}
	})
}

func (f *files) key(b *browser, ev *tcell.EventKey) bool {
	now := 3
	if f.table == "" {
		now = 0
	}
	switch {
	case ev.Key() == tcell.KeyEnter && f.grid.rows > 0:
		b.push(newAnatomy(f.list[f.grid.row].Name))
	case f.grid.key(ev):
	case f.table != "":
		v := tab(ev, f.table, now)
		if v == nil {
			return false
		}
		b.replace(v)
	default:
		return false
	}
	return true
}

// node is a structure of a file.
type node struct {
	ID     int    `json:"id"`
	Parent int    `json:"parent"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Value  string `json:"value"`
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	Inner  *int64 `json:"inner"`
	Role   string `json:"role"`
	Column string `json:"column"`
	From   *int64 `json:"from"`
	To     *int64 `json:"to"`
	Parts  int    `json:"parts"`
	Says   string `json:"says"`
}

// letters are those of the roles in the line that is the file.
var letters = map[string]rune{"header": 'H', "footer": 'F', "metadata": 'M', "index": 'I', "dictionary": 'D',
	"page": 'P', "nulls": 'N', "levels": 'L', "filter": 'B', "log": 'W', "checksum": 'C', "hole": '.', "gap": '?',
	"other": '-'}

// colours of the roles, as 256 colours have them.
var colours = map[rune]int{'H': 69, 'F': 69, 'M': 75, 'I': 178, 'D': 71, 'P': 110, 'N': 139, 'L': 139, 'B': 173,
	'W': 110, 'C': 244, '.': 240, '?': 203, '-': 250}

// anatomy is the structure of a file.
type anatomy struct {
	name  string
	table string // of which this is the only file; "": not known
	goTo  int64  // a byte to begin with; -1: none

	size     int64
	problem  string
	grid     grid
	path     []node // into which the user went
	parts    []node
	whole    bool // parts has all of them
	loading  bool
	segments []segment
	width    int // for which segments are
	damage   []finding
	begun    bool
	detail   node // with what is said about it
	bytes    []byte
}

type segment struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Role string `json:"role"`
}

func newAnatomy(name string) *anatomy { return newAnatomyOf(name, "") }

func newAnatomyOf(name, table string) *anatomy {
	a := &anatomy{name: name, table: table, goTo: -1}
	a.grid = grid{cell: a.cell, columns: []column{{"structure", false, 34}, {"value", false, 50}, {"offset", true, 0},
		{"length", true, 0}, {"role", false, 0}, {"column", false, 24}, {"rows", true, 0}}}
	return a
}

func (a *anatomy) title() string {
	names := []string{cmp.Or(a.table, a.name) + " · structure"}
	for _, n := range a.path {
		names = append(names, n.Name)
	}
	return strings.Join(names, " / ")
}

func (a *anatomy) keys() string { return "Enter into it  / search  1 rows  2 columns  4 findings" }

func (a *anatomy) begin(b *browser) {
	a.loading = false
	if a.begun && len(a.parts) > 0 {
		a.look(b)
		return
	}
	a.begun = true
	b.say(dim, "reading the structure …")
	type summary struct {
		Size       int64  `json:"size"`
		Format     string `json:"format"`
		Structures int64  `json:"structures"`
		Problem    string `json:"problem"`
		Cut        bool   `json:"cut"`
	}
	ask(b, "anatomy", values("name", a.name), func(s *summary) {
		a.size, a.problem = s.Size, s.Problem
		what := fmt.Sprintf("%s, %s, %s", cmp.Or(s.Format, "no format that is known"), display.BytesText(s.Size),
			display.Count(s.Structures, "structure"))
		if s.Cut {
			what += ", and more"
		}
		b.say(plain, "%s", what)
		if s.Problem != "" {
			b.say(bad, "%s; it ends at: %s", what, s.Problem)
		}
		if a.goTo >= 0 {
			a.at(b, values("name", a.name, "offset", digits(a.goTo)))
		} else {
			a.enter(b, nil)
		}
		verify(b, a.name, "sums", func(f finding) {
			if f.Severity == "error" && f.Object == a.name && len(a.damage) < maxFindings {
				a.damage = append(a.damage, f)
			}
		}, func(error) {})
	})
}

// at goes to the structure that a request names: its parts, or, if it has none, those beside it.
func (a *anatomy) at(b *browser, q map[string][]string) {
	type answer struct {
		Path []node `json:"path"`
	}
	ask(b, "at", q, func(doc *answer) {
		if len(doc.Path) == 0 {
			a.enter(b, nil)
			b.say(bad, "no structure has this byte")
			return
		}
		last := doc.Path[len(doc.Path)-1]
		path := doc.Path[:len(doc.Path)-1]
		a.list(b, path, last.ID)
	})
}

// enter shows the parts of the innermost structure of a path.
func (a *anatomy) enter(b *browser, path []node) { a.list(b, path, -1) }

// list shows the parts of the innermost structure of a path; chosen is the one that is chosen.
func (a *anatomy) list(b *browser, path []node, chosen int) {
	a.path, a.parts, a.whole, a.loading = path, nil, false, false
	a.grid.row, a.grid.top, a.grid.rows = 0, 0, 0
	a.more(b, chosen)
}

const partsAsked = 500

// more asks for further parts.
func (a *anatomy) more(b *browser, chosen int) {
	if a.whole || a.loading {
		return
	}
	a.loading = true
	type answer struct {
		Parts []node `json:"parts"`
	}
	id, depth := a.inside(), len(a.path)
	q := values("name", a.name, "node", strconv.Itoa(id), "skip", strconv.Itoa(len(a.parts)),
		"n", strconv.Itoa(partsAsked))
	ask(b, "parts", q, func(doc *answer) {
		if id != a.inside() || depth != len(a.path) {
			return
		}
		a.loading = false
		a.parts = append(a.parts, doc.Parts...)
		a.whole, a.grid.rows = len(doc.Parts) < partsAsked, int64(len(a.parts))
		if len(a.path) == 0 && chosen < 0 && len(a.parts) == 1 && a.parts[0].Parts > 0 { // the file itself
			a.enter(b, []node{a.parts[0]})
			return
		}
		k := slices.IndexFunc(a.parts, func(n node) bool { return n.ID == chosen })
		switch {
		case k >= 0:
			a.grid.row = int64(k)
		case chosen >= 0 && !a.whole:
			a.more(b, chosen)
			return
		}
		a.grid.settle()
		a.look(b)
	})
}

// inside is the structure whose parts are listed; -1: the file.
func (a *anatomy) inside() int {
	if len(a.path) == 0 {
		return -1
	}
	return a.path[len(a.path)-1].ID
}

// look asks for what is said about the chosen structure, and its bytes.
func (a *anatomy) look(b *browser) {
	if a.grid.row >= int64(len(a.parts)) {
		return
	}
	n := a.parts[a.grid.row]
	a.detail, a.bytes = n, nil
	type said struct {
		Path []node `json:"path"`
	}
	ask(b, "at", values("name", a.name, "node", strconv.Itoa(n.ID)), func(doc *said) {
		if len(doc.Path) > 0 && doc.Path[len(doc.Path)-1].ID == a.detail.ID {
			a.detail.Says = doc.Path[len(doc.Path)-1].Says
		}
	})
	if n.Length == 0 || n.Inner != nil {
		return
	}
	type hexed struct {
		Hex string `json:"hex"`
	}
	q := values("name", a.name, "offset", digits(n.Offset), "length", digits(min(n.Length, 48)))
	ask(b, "bytes", q, func(doc *hexed) {
		if a.detail.ID == n.ID {
			a.bytes, _ = hex.DecodeString(doc.Hex)
		}
	})
}

func (a *anatomy) cell(row int64, col int) cell {
	n := a.parts[row]
	if col == 0 {
		mark := "  "
		if n.Parts > 0 {
			mark = "+ "
		}
		if a.hurt(n) {
			return cell{mark + "✗ " + n.Name, bad}
		}
		return cell{mark + n.Name, plain}
	}
	span := ""
	if n.From != nil && n.To != nil {
		span = fmt.Sprintf("%d to %d", *n.From, *n.To-1)
	}
	offset := digits(n.Offset)
	if n.Inner != nil {
		offset = "+" + digits(*n.Inner)
	}
	return cell{[...]string{"", n.Value, offset, digits(n.Length), n.Role, n.Column, span}[col], plain}
}

// hurt reports whether verify found an error in a structure.
func (a *anatomy) hurt(n node) bool {
	return slices.ContainsFunc(a.damage, func(f finding) bool {
		return f.Offset < n.Offset+n.Length && f.Offset+max(1, f.Length) > n.Offset
	})
}

func (a *anatomy) key(b *browser, ev *tcell.EventKey) bool {
	switch {
	case is(ev, '/'):
		b.prompt("search", "", func(text string) { b.push(newFound(a, text)) })
	case ev.Key() == tcell.KeyEnter:
		if a.grid.rows > 0 && a.parts[a.grid.row].Parts > 0 {
			a.enter(b, append(slices.Clip(a.path), a.parts[a.grid.row]))
		}
	case len(a.path) > 1 && (ev.Key() == tcell.KeyEscape || ev.Key() == tcell.KeyBackspace2 ||
		ev.Key() == tcell.KeyBackspace):
		last := a.path[len(a.path)-1]
		a.list(b, a.path[:len(a.path)-1], last.ID)
	case a.grid.key(ev):
		a.look(b)
	default:
		if v := tab(ev, cmp.Or(a.table, a.name), 3); v != nil {
			b.replace(v)
			return true
		}
		return false
	}
	return true
}

// detailLines are those below the list of structures: the bytes, and what is said.
const detailLines = 7

// draw draws the file as a line of letters, the structures, and what is chosen.
func (a *anatomy) draw(b *browser, at rect) {
	low := detailLines
	if at.h < 16 {
		low = 0
	}
	a.drawMap(b, rect{at.x, at.y, at.w, 2})
	a.grid.draw(b, rect{at.x, at.y + 2, at.w, at.h - 2 - low})
	if a.grid.top+a.grid.height >= a.grid.rows && len(a.parts) > 0 {
		a.more(b, -1)
	}
	if low > 0 && len(a.parts) > 0 {
		a.drawDetail(b, rect{at.x, at.y + at.h - low, at.w, low})
	}
}

// drawMap draws every cell with the letter of its bytes, and below it a mark under those of the chosen structure.
func (a *anatomy) drawMap(b *browser, at rect) {
	if a.size == 0 || !a.begun {
		return
	}
	if a.width != at.w {
		a.width = at.w
		type answer struct {
			Segments []segment `json:"segments"`
		}
		q := values("name", a.name, "n", strconv.Itoa(max(1, min(4*at.w, 4000))))
		ask(b, "map", q, func(doc *answer) { a.segments = doc.Segments })
	}
	for i := range at.w {
		from, to := a.size*int64(i)/int64(at.w), max(a.size*int64(i+1)/int64(at.w), a.size*int64(i)/int64(at.w)+1)
		r, st := a.letter(b, from, to)
		b.screen.SetContent(at.x+i, at.y, r, nil, st)
		mark := ' '
		if n := a.detail; len(a.parts) > 0 && n.Offset < to && n.Offset+max(1, n.Length) > from {
			mark = '^'
		}
		b.screen.SetContent(at.x+i, at.y+1, mark, nil, b.look(strong))
	}
}

// letter is the cell of the bytes [from, to): X if verify found damage in them, else the role of most of them.
func (a *anatomy) letter(b *browser, from, to int64) (rune, tcell.Style) {
	for _, f := range a.damage {
		if f.Offset < to && f.Offset+max(1, f.Length) > from {
			return 'X', b.look(bad).Reverse(true)
		}
	}
	role, most := "", int64(0)
	for _, s := range a.segments {
		if n := min(s.To, to) - max(s.From, from); n > most {
			role, most = s.Role, n
		}
	}
	r, ok := letters[role]
	if !ok {
		r = ' '
	}
	st := tcell.StyleDefault
	if b.colours {
		st = st.Foreground(tcell.PaletteColor(colours[r]))
	}
	return r, st
}

// drawDetail draws the chosen structure: its bytes, its place and what the documents say.
func (a *anatomy) drawDetail(b *browser, at rect) {
	n := a.detail
	what := n.Name
	if n.Value != "" {
		what += " = " + n.Value
	}
	where := fmt.Sprintf("bytes %d to %d (%d), %s", n.Offset, n.Offset+n.Length-1, n.Length, n.Role)
	if n.Inner != nil {
		where = fmt.Sprintf("%d bytes at %d of the decoded bytes, %s", n.Length, *n.Inner, n.Role)
	}
	b.fill(at.x, at.y, at.w, what, b.look(strong))
	b.fill(at.x, at.y+1, at.w, where, b.look(plain))
	y := at.y + 2
	if n.Says != "" {
		for _, l := range firstOf(folded(n.Says, at.w), 2) {
			b.fill(at.x, y, at.w, l, b.look(dim))
			y++
		}
	}
	for i := 0; i < len(a.bytes) && y < at.y+at.h; i += 16 {
		line := a.bytes[i:min(i+16, len(a.bytes))]
		shown := make([]byte, len(line))
		for k, c := range line {
			if shown[k] = c; c < ' ' || c > '~' {
				shown[k] = '.'
			}
		}
		b.fill(at.x, y, at.w, fmt.Sprintf("%08x  %-48s %s", n.Offset+int64(i), fmt.Sprintf("% x", line), shown),
			b.look(plain))
		y++
	}
}

func firstOf(lines []string, n int) []string { return lines[:min(n, len(lines))] }

// found are the structures that a search finds.
type found struct {
	of   *anatomy
	what string
	grid grid
	list []node
}

func newFound(a *anatomy, what string) *found {
	f := &found{of: a, what: what}
	f.grid = grid{columns: []column{{"structure", false, 34}, {"value", false, 40}, {"offset", true, 0},
		{"length", true, 0}}, cell: func(row int64, col int) cell {
		n := f.list[row]
		return cell{[...]string{n.Name, n.Value, digits(n.Offset), digits(n.Length)}[col], plain}
	}}
	return f
}

func (f *found) title() string            { return "search " + f.what }
func (f *found) keys() string             { return "Enter there" }
func (f *found) draw(b *browser, at rect) { f.grid.draw(b, at) }

func (f *found) begin(b *browser) {
	type answer struct {
		Nodes []node `json:"nodes"`
	}
	ask(b, "search", values("name", f.of.name, "q", f.what), func(doc *answer) {
		f.list, f.grid.rows = doc.Nodes, int64(len(doc.Nodes))
		if len(f.list) == 0 {
			b.say(plain, "nothing has that")
		}
	})
}

func (f *found) key(b *browser, ev *tcell.EventKey) bool {
	if ev.Key() == tcell.KeyEnter && f.grid.rows > 0 {
		n := f.list[f.grid.row]
		b.pop()
		f.of.at(b, values("name", f.of.name, "node", strconv.Itoa(n.ID)))
		return true
	}
	return f.grid.key(ev)
}
