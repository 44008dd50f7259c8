package serve

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/fault"
	"stoa/internal/cells"
	"stoa/internal/fit"
	"stoa/pred"
	"stoa/store"
	"stoa/vec"
)

// opened is an open table that several requests use. It is closed when the last one has ended and it is no longer kept.
type opened struct {
	*stoa.Table
	known     atomic.Int64 // rows; -1: known only by reading. Several requests may count them
	at        *stoa.Positions
	counted   atomic.Pointer[losses] // what was lost when the rows were counted: rows that have no position
	recovered bool                   // it could only be opened as recover does
	users     atomic.Int64
}

// rows is how many rows the table has; -1: known only by reading.
func (o *opened) rows() int64 { return o.known.Load() }

// count finds how many rows the table has, by reading it if nothing else says so.
func (o *opened) count(ctx context.Context) error {
	if o.rows() >= 0 {
		return nil
	}
	lost := &losses{at: o.at}
	n, err := o.Count(ctx, stoa.ScanSpec{Damaged: stoa.NullCells, Memory: 64 << 20, Lost: lost.add})
	if err == nil {
		for _, d := range lost.docs {
			if d.Column == "" && d.From != nil { // rows that did not come out have positions, too
				n += *d.To - *d.From
			}
		}
		n += lost.unplaced
		o.counted.Store(lost)
		o.known.Store(n)
	}
	return err
}

// told returns what an answer says that lacks what was lost of it, and rows that were lost when they were counted.
func (o *opened) told(l *losses) lostDoc {
	if c := o.counted.Load(); c != nil {
		for _, d := range c.docs {
			if d.From == nil {
				l.put(d)
			}
		}
	}
	return l.doc(o.Table)
}

func (o *opened) release() {
	if o.users.Add(-1) == 0 {
		o.Table.Close()
	}
}

// target is a table as a request names it: at a moment of its past, or ("") now.
type target struct{ name, at string }

func (t target) key() string { return t.at + "\x00" + t.name }

// opening are how a table is opened.
func (s *Server) opening(t target) stoa.OpenOptions {
	o := s.options()
	if t.at != "" {
		o.Opts = map[string]string{"at": t.at}
	}
	return o
}

// target returns the table that a request names.
func (s *Server) target(q query) (t target, err error) {
	if t.name, err = s.name(q); err != nil {
		return t, err
	}
	if t.at = q.text("at"); len(t.at) > maxMoment || !utf8.ValidString(t.at) || strings.ContainsRune(t.at, 0) {
		return t, asked("at is no moment")
	}
	return t, nil
}

const maxMoment = 64 // bytes of the text of a moment

// table opens a table, or returns the one that is kept. A table that cannot be opened because it is damaged is opened
// as recover does. The caller releases it.
func (s *Server) table(ctx context.Context, name target) (*opened, error) {
	if o, ok := s.tables.get(name.key(), func(o *opened) { o.users.Add(1) }); ok {
		return o, nil
	}
	open := context.WithoutCancel(ctx) // it outlives the request
	options := s.opening(name)
	t, err := stoa.Open(open, name.name, options)
	recovered := false
	if errors.Is(err, fault.Corrupt) {
		options.Recover, recovered = true, true
		again, rerr := stoa.Open(open, name.name, options)
		if rerr == nil {
			t, err = again, nil
		}
	}
	if err != nil {
		return nil, err
	}
	o := &opened{Table: t, recovered: recovered}
	o.users.Store(2) // the cache's, and the caller's
	rows := int64(-1)
	if o.at, err = t.Positions(ctx); err == nil {
		rows = o.at.Total()
	}
	o.known.Store(rows)
	s.tables.put(name.key(), o)
	return o, nil
}

// The limits of what one request for rows returns.
const (
	maxRows  = 1000
	maxBytes = 4 << 20 // of cells
	maxCell  = 2000    // bytes; a longer one is cut, and export has it whole
	lookTime = time.Second
)

// rowsResult is a window of rows.
type rowsResult struct {
	Columns []columnDoc `json:"columns"`
	Total   *int64      `json:"total"` // positions of the table
	From    int64       `json:"from"`  // the window's first position
	Next    int64       `json:"next"`  // where the next one begins
	End     bool        `json:"end"`   // there are no more
	// Rows have a cell for each column: as text, or null. At has their positions where they are known: those of rows
	// that passed a filter are not.
	Rows      [][]*string `json:"rows"`
	At        []int64     `json:"at,omitempty"`
	Recovered bool        `json:"recovered,omitempty"`
	// Altered has the columns with strings that are not UTF-8: JSON cannot hold them, and U+FFFD stands for each byte
	// that is none.
	Altered []alteredDoc `json:"altered,omitempty"`
	lostDoc

	bytes int
	lost  *losses
}

// alteredDoc says how many cells of a column are not shown as they are.
type alteredDoc struct {
	Column string `json:"column"`
	Cells  int64  `json:"cells"`
}

type columnDoc struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Kind string `json:"kind"` // number, text, other: how it is aligned
}

// rowsDoc returns rows from a position on. Without a filter it is a window of positions; with one, the first rows from
// there on that pass: positions are looked through for about a second, and the next request goes on from there.
func (s *Server) rowsDoc(ctx context.Context, q query) (any, error) {
	name, err := s.target(q)
	if err != nil {
		return nil, err
	}
	from, err1 := q.number("from", 0, 0, 1<<62)
	n, err2 := q.number("n", 100, 1, maxRows)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	look := rowLook{from: from, n: n, raw: q.text("raw") == "true"}
	if where := strings.TrimSpace(q.text("where")); where != "" {
		if look.filter, err = pred.Parse(where); err != nil {
			return nil, err
		}
	}
	r, err := s.look(ctx, name, look)
	if errors.Is(err, store.ErrChanged) { // since it was opened
		s.tables.drop(name.key())
		r, err = s.look(ctx, name, look)
	}
	return r, err
}

// rowLook is what one request for rows asks for.
type rowLook struct {
	from, n int64
	filter  *pred.Expr
	raw     bool // cells as JSON, instead of for people
}

func (s *Server) look(ctx context.Context, name target, look rowLook) (*rowsResult, error) {
	t, err := s.table(ctx, name)
	if err != nil {
		return nil, err
	}
	defer t.release()
	if err := t.count(ctx); err != nil {
		return nil, err
	}
	r := &rowsResult{From: look.from, Next: look.from, Rows: [][]*string{}, Recovered: t.recovered,
		lost: &losses{at: t.at}}
	defer func() { r.lostDoc = t.told(r.lost) }()
	n := t.rows()
	r.Total = &n
	for _, f := range t.Schema().Fields() {
		r.Columns = append(r.Columns, columnDoc{f.Name, f.Type.String(), kindOfType(f.Type)})
	}
	width := look.n
	for begin := time.Now(); int64(len(r.Rows)) < look.n && !r.End && r.bytes < maxBytes; {
		whole, err := s.window(ctx, t, look, width, r)
		switch {
		case err != nil:
			return nil, err
		case !whole: // more rows passed than one answer holds
			width = max(1, width/8)
			continue
		case look.filter == nil || time.Since(begin) > lookTime:
			return r, nil
		case width < 1<<20:
			width *= 4
		}
	}
	return r, nil
}

// window reads up to width positions from r.Next on. If not all of the rows that pass the filter fit into the answer,
// it is not whole, and adds none.
func (s *Server) window(ctx context.Context, t *opened, look rowLook, width int64, r *rowsResult) (whole bool,
	err error) {
	if r.Next >= t.rows() { // nothing is read, but the table may have changed since it was opened, or lack whole files
		after := vec.Range{From: r.Next, To: r.Next + 1}
		r.lost.rows = after
		_, err := t.Count(ctx, stoa.ScanSpec{Rows: after, Damaged: stoa.NullCells, Lost: r.lost.add})
		r.End = true
		return true, err
	}
	spec := stoa.ScanSpec{Filter: look.filter, Rows: vec.Range{From: r.Next, To: min(r.Next+width, t.rows())},
		Damaged: stoa.NullCells, Memory: 64 << 20, Batch: 4096}
	lost := &losses{at: t.at, rows: spec.Rows, docs: slices.Clone(r.lost.docs), more: r.lost.more}
	spec.Lost = lost.add
	before, bytes, altered, full := len(r.Rows), r.bytes, slices.Clone(r.Altered), false
	for b, err := range t.Scan(ctx, spec) {
		if err != nil {
			return false, err
		}
		if full = !r.add(b, look); full {
			break
		}
	}
	if look.filter != nil && full && width > 1 {
		r.Rows, r.bytes, r.Altered = r.Rows[:before], bytes, altered
		return false, nil
	}
	r.lost = lost
	got := int64(len(r.Rows) - before)
	switch {
	case look.filter != nil:
		r.Next = spec.Rows.To
	case full || got == spec.Rows.Len():
		for i := range got {
			r.At = append(r.At, r.Next+i)
		}
		r.Next += got
	default: // rows are missing
		r.At, r.Next = lost.between(spec.Rows, got), spec.Rows.To
	}
	r.End = r.Next >= t.rows()
	return true, nil
}

// add appends the rows of a batch. It reports whether all fit into the answer.
func (r *rowsResult) add(b arrow.RecordBatch, look rowLook) bool {
	var buf []byte
	nulls := make([]func(int) bool, b.NumCols()) // also those of types without a bitmap of nulls
	invalid := make([]func(int) bool, b.NumCols())
	for k, c := range b.Columns() {
		nulls[k], invalid[k] = cells.Nulls(c), fit.Invalid(c)
	}
	for i := range int(b.NumRows()) {
		if r.bytes >= maxBytes || len(r.Rows) >= maxRows+int(look.n) {
			return false
		}
		row := make([]*string, b.NumCols())
		for k, c := range b.Columns() {
			if nulls[k] != nil && nulls[k](i) {
				continue
			}
			if look.raw {
				buf = cells.AppendJSON(buf[:0], c, i)
			} else {
				buf = cells.AppendCell(buf[:0], c, i)
			}
			if invalid[k] != nil && invalid[k](i) {
				r.Altered = alterBy(r.Altered, b.ColumnName(k), 1)
			}
			text := cut(buf)
			r.bytes += len(text) + 16
			row[k] = &text
		}
		r.Rows = append(r.Rows, row)
	}
	return true
}

// alter adds the cells of a column, of n, that invalid says are not UTF-8.
func alter(docs []alteredDoc, column string, invalid func(int) bool, n int) []alteredDoc {
	if invalid == nil {
		return docs
	}
	cells := int64(0)
	for i := range n {
		if invalid(i) {
			cells++
		}
	}
	return alterBy(docs, column, cells)
}

// alterBy adds so many cells of a column.
func alterBy(docs []alteredDoc, column string, cells int64) []alteredDoc {
	k := slices.IndexFunc(docs, func(d alteredDoc) bool { return d.Column == column })
	switch {
	case cells == 0:
		return docs
	case k < 0:
		return append(docs, alteredDoc{column, cells})
	}
	docs[k].Cells += cells
	return docs
}

// cut returns a cell as text, shortened if it is too long.
func cut(b []byte) string { return cutTo(b, maxCell) }

// cutTo returns at most so many bytes of a text, and a sign that there are more.
func cutTo(b []byte, most int) string {
	if len(b) <= most {
		return strings.ToValidUTF8(string(b), "\uFFFD")
	}
	b = b[:most]
	for k := 1; k <= min(3, len(b)); k++ { // a character is left out whole
		if utf8.RuneStart(b[len(b)-k]) {
			if !utf8.FullRune(b[len(b)-k:]) {
				b = b[:len(b)-k]
			}
			break
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD") + "…"
}

// kindOfType says how cells of a type are aligned.
func kindOfType(t arrow.DataType) string {
	switch {
	case arrow.IsInteger(t.ID()), arrow.IsFloating(t.ID()), arrow.IsDecimal(t.ID()):
		return "number"
	case t.ID() == arrow.STRING, t.ID() == arrow.LARGE_STRING:
		return "text"
	}
	return "other"
}
