package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"stoa/format"
	"stoa/internal/sorted"
	"stoa/pred"
)

// The engine's own reasons. Readers report theirs through format.Skipped.
const (
	byGroupBounds = "bounds of the row group"
	ByPageBounds  = "bounds of the page"
	ByDictionary  = "no value of the dictionary passes"
	ByCodes       = "codes compared, the dictionary tested once"
	ByRows        = "rows skipped"       // because row groups, or pages of other columns, exclude them
	ByFilter      = "no row passes"      // known only after the filter's columns were decoded
	ByReader      = "the format's index" // for a reader that does not report why
	byPages       = "no page needs it"   // of a dictionary
)

// Trace records what a scan reads and skips: Walk records what a scan is going to read, as far as metadata shows; a Run
// with Spec.Trace records what it did read. It is safe for concurrent use. A nil Trace records nothing.
type Trace struct {
	mu      sync.Mutex
	levels  []*tally // parts, row groups, rows
	columns []*tally // dictionaries and pages, in order of first use
	pages   map[pageKey]*pageNote
	ran     bool
	source  *source // the one being walked or read
	reads   int64
	bytes   int64
}

// source distinguishes the columns of one table's sources.
type source struct {
	n       int
	columns []format.Column
	plan    *Plan
}

// Tally is one level of a scan.
type Tally struct {
	Level      format.Level
	Column     string   // of LevelDict and LevelPage
	Filter     bool     // the filter uses this column
	Considered int64    // how many reached this level; -1 if known only by reading
	Read       int64    // -1 as for Considered
	Skipped    []Reason // the rest, the most frequent reason first
	// of LevelPage, after a run: pages that were read, and where the filter was applied without comparing each value
	Used []Reason
	// stored bytes of what is read; 0 for LevelRows, approximate for parts and row groups, -1 if not known
	Bytes int64
	Total int64 // of what was considered; likewise
}

// Reason is why items were skipped, and how many.
type Reason struct {
	Why string `json:"why"`
	N   int64  `json:"n"`
}

type tally struct {
	Tally
	why     map[string]int64
	used    map[string]int64
	unknown bool // a row group does not declare how many rows it has
}

type pageKey struct {
	source, group, column int
	dict                  bool
	part                  string
	object                string
	at, sub               int64 // where the page's bytes begin or, if it has none, its number
}

type pageNote struct {
	column *tally
	bytes  int64
	why    string // "" = read
	seen   bool   // by the run, not only by the walk
}

// NewTrace returns an empty trace.
func NewTrace() *Trace {
	t := &Trace{pages: map[pageKey]*pageNote{}}
	for _, l := range []format.Level{format.LevelPart, format.LevelGroup, format.LevelRows} {
		t.levels = append(t.levels, &tally{Tally: Tally{Level: l}, why: map[string]int64{}})
	}
	return t
}

func (t *Trace) level(l format.Level) *tally {
	return t.levels[slices.IndexFunc(t.levels, func(x *tally) bool { return x.Level == l })]
}

// Plan returns the plan of the source that was passed to Start.
func (t *Trace) Plan() *Plan { return t.source.plan }

// Count counts n parts, row groups or rows, of this many bytes (-1: not known); why is "" if they are read.
func (t *Trace) Count(l format.Level, n, bytes int64, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.level(l).add(n, bytes, why)
}

// CountUnknown records that a row group does not declare how many rows it has.
func (t *Trace) CountUnknown() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.level(format.LevelRows).unknown = true
}

// add counts n items of a level, of this many bytes; why is "" if they are read.
func (t *tally) add(n, bytes int64, why string) {
	t.Considered += n
	if bytes < 0 || t.Total < 0 {
		t.Total, t.Bytes = -1, -1
	} else {
		t.Total += bytes
	}
	if why != "" {
		t.why[why] += n
		return
	}
	t.Read += n
	if t.Bytes >= 0 {
		t.Bytes += bytes
	}
}

// Start makes r, as source n, the subject of the next walk or run.
func (t *Trace) Start(n int, r format.Reader, spec Spec, run bool) error {
	p, err := New(r, spec)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.source = &source{n: n, columns: r.Columns(), plan: p}
	t.ran = t.ran || run
	return nil
}

func (t *Trace) key(g format.RowGroup, col int, p format.Page, l format.Level) pageKey {
	k := pageKey{source: t.source.n, dict: l == format.LevelDict, part: g.Part, group: g.Index, column: col,
		at: int64(p.Ordinal), sub: p.Sub}
	if len(p.Spans) > 0 { // a block that is divided into several pages counts as one
		k.object, k.at, k.sub = p.Spans[0].Object, p.Spans[0].Off, 0
	}
	return k
}

// column returns the tally of a physical column's pages, or dictionaries.
func (t *Trace) column(col int, l format.Level) *tally {
	s := t.source
	name := cmp.Or(s.columns[col].Name, "value")
	k := slices.IndexFunc(t.columns, func(x *tally) bool { return x.Column == name && x.Level == l })
	if k < 0 {
		filter := slices.Contains(s.plan.Filters, col)
		for _, f := range s.plan.FilterFields {
			filter = filter || slices.Contains(f.Cols, col)
		}
		k = len(t.columns)
		t.columns = append(t.columns, &tally{Tally: Tally{Level: l, Column: name, Filter: filter},
			why: map[string]int64{}})
	}
	return t.columns[k]
}

// Walked records a page or a dictionary during a walk.
func (t *Trace) Walked(g format.RowGroup, col int, p format.Page, why string, l format.Level) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.key(g, col, p, l)
	if n := t.pages[k]; n != nil {
		if why == "" {
			n.why = ""
		}
		return
	}
	t.pages[k] = &pageNote{column: t.column(col, l), bytes: stored(p), why: why}
}

// Note records, during a run, that the page is decoded (why is ""), or skipped.
func (t *Trace) Note(g format.RowGroup, col int, p format.Page, why string) {
	t.noteAs(g, col, p, why, format.LevelPage)
}

// NoteDict records, during a run, that the chunk's dictionary, if it has one, is needed. It may have been read before.
func (t *Trace) NoteDict(g format.RowGroup, col int, c format.Chunk) {
	if d, ok := c.Dict(); ok && t != nil {
		t.noteAs(g, col, d, "", format.LevelDict)
	}
}

func (t *Trace) noteAs(g format.RowGroup, col int, p format.Page, why string, l format.Level) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.key(g, col, p, l)
	n := t.pages[k]
	if n == nil {
		n = &pageNote{column: t.column(col, l), bytes: stored(p)}
		t.pages[k] = n
	}
	if !n.seen || why == "" {
		n.why, n.seen = why, true
	}
}

// Used records that a page of a column was read, and the means by which comparing each of its values was avoided.
func (t *Trace) Used(col int, how string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.column(col, format.LevelPage)
	if c.used == nil {
		c.used = map[string]int64{}
	}
	c.used[how]++
}

// NoteRead records, during a run, one read of this many bytes.
func (t *Trace) NoteRead(bytes int64) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reads++
	t.bytes += bytes
}

// Fetched returns how many reads of pages a run did, and of how many bytes, including the gaps between pages that are
// read rather than skipped.
func (t *Trace) Fetched() (reads, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.reads, t.bytes
}

// Tallies returns the levels, from the outside in: parts, row groups, rows, then the dictionaries and pages of each
// column. After a run, pages that were to be read but were not are reported as skipped because no row passed.
func (t *Trace) Tallies() []Tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.columns {
		c.Considered, c.Read, c.Bytes, c.Total = 0, 0, 0, 0
		clear(c.why)
	}
	for _, n := range t.pages {
		why := n.why
		if t.ran && !n.seen && why == "" {
			if why = ByFilter; n.column.Level == format.LevelDict {
				why = byPages
			}
		}
		n.column.add(1, n.bytes, why)
	}
	out := make([]Tally, 0, len(t.levels)+len(t.columns))
	for _, l := range slices.Concat(t.levels, t.columns) {
		x := l.Tally
		if l.unknown {
			x.Considered, x.Read = -1, -1
		}
		x.Skipped, x.Used = reasons(l.why), reasons(l.used)
		out = append(out, x)
	}
	return out
}

// reasons returns the counts as reasons, the largest first.
func reasons(counts map[string]int64) (out []Reason) {
	all := slices.Collect(maps.Keys(counts))
	sorted.By(all, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b)) })
	for _, why := range all {
		if counts[why] > 0 {
			out = append(out, Reason{why, counts[why]})
		}
	}
	return out
}

// WhyBounds returns the reason for bounds that exclude all rows.
func WhyBounds(b *pred.Bounds, why string) string {
	if b.By != "" {
		return b.By
	}
	return why
}

// SizeOrUnknown returns a declared size, or -1 for 0, as formats that do not know the size leave it 0.
func SizeOrUnknown(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

// WhyGroup returns which bounds excluded row group g, none of whose rows can pass.
func (p *Plan) WhyGroup(g format.RowGroup, o format.Overlay) string {
	plain, by := g, byGroupBounds
	plain.Bounds = maps.Clone(g.Bounds)
	for k, b := range plain.Bounds {
		if b.Ask != nil && slices.Contains(p.Filters, k) {
			by = b.By
		}
		b.Ask = nil
		plain.Bounds[k] = b
	}
	if p.Prunes(plain, o, -1, nil) {
		return byGroupBounds
	}
	return by
}

func stored(p format.Page) int64 {
	var n int64
	for _, s := range p.Spans {
		n += s.Len
	}
	return n
}
