package serve

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/internal/cells"
	"stoa/internal/extremes"
	"stoa/internal/fit"
	"stoa/internal/sorted"
	"stoa/pred"
	"stoa/store"
)

// The limits of a look at the values of a column.
const (
	valuesTime  = 10 * time.Second
	maxSample   = 200_000
	maxDistinct = 100_000
	maxTop      = 25
	maxBands    = 200
	maxBins     = 40
	maxKey      = 200 // bytes of a value that are shown

	maxEntries      = 1000 // of dictionaries
	maxDictionaries = 100  // that are read
)

// valuesResult says what a column holds.
type valuesResult struct {
	Column string `json:"column"`
	Type   string `json:"type"`
	Rows   int64  `json:"rows"`  // that were looked at
	Ended  bool   `json:"ended"` // these are all that can be read
	Total  *int64 `json:"total"` // also of rows that cannot be read
	Nulls  int64  `json:"nulls"` // also cells that could not be read
	// Altered is how many cells have strings that are not UTF-8. As values they are what they are; U+FFFD is shown for
	// each byte that is none.
	Altered int64 `json:"altered,omitempty"`
	lostDoc
	// Distinct values; DistinctMore: there are more, and Top is of those that were seen first.
	Distinct     int        `json:"distinct"`
	DistinctMore bool       `json:"distinct_more,omitempty"`
	Top          []topValue `json:"top"`
	Histogram    *histogram `json:"histogram"`
	// Bands are in the order of the rows: one a page (ByPage), or of equal numbers of rows.
	Bands  []valueBand `json:"bands"`
	ByPage bool        `json:"by_page"`
	// Up and Down are how many bands begin where the one before ends, or end where it begins: those of a sorted column
	// all do. Bands without values are left out.
	Up   int `json:"up"`
	Down int `json:"down"`
	// Lo and Hi are the least and the greatest value of all, as cells; no value of the type may have an order.
	Lo string `json:"lo,omitempty"`
	Hi string `json:"hi,omitempty"`
	// Dictionary has entries of the column's dictionaries, in the order in which they are stored, each once.
	Dictionary *dictionaryDoc `json:"dictionary,omitempty"`
}

type topValue struct {
	Value string `json:"value"`
	N     int64  `json:"n"`
}

// histogram counts values by size, or texts and bytes by length, between From and To; Lo and Hi are these two as cells.
type histogram struct {
	What   string  `json:"what"` // value or length
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Lo     string  `json:"lo,omitempty"`
	Hi     string  `json:"hi,omitempty"`
	Counts []int64 `json:"counts"`
	Sample int     `json:"sample"` // of how many values
	Of     int64   `json:"of"`     // values; those that are infinite or no number are not among them
}

// valueBand is the least and the greatest value of the rows [From, To): as cells, and as numbers to be drawn. Those of
// texts are of what follows their common beginning, and infinite ones lie at the edge of the others.
type valueBand struct {
	From int64    `json:"from"`
	To   int64    `json:"to"`
	Min  *float64 `json:"min"`
	Max  *float64 `json:"max"`
	Lo   string   `json:"lo"`
	Hi   string   `json:"hi"`

	lo, hi extremes.Value
}

// valuesDoc reads a column, for as long as valuesTime allows.
func (s *Server) valuesDoc(ctx context.Context, q query) (any, error) {
	name, err := s.target(q)
	if err != nil {
		return nil, err
	}
	column := q.text("column")
	if column == "" {
		return nil, asked("column is missing")
	}
	r, err := s.values(ctx, name, column)
	if errors.Is(err, store.ErrChanged) {
		s.tables.drop(name.key())
		r, err = s.values(ctx, name, column)
	}
	return r, err
}

func (s *Server) values(ctx context.Context, name target, column string) (*valuesResult, error) {
	t, err := s.table(ctx, name)
	if err != nil {
		return nil, err
	}
	defer t.release()
	spec := stoa.ScanSpec{Columns: []string{column}, Damaged: stoa.NullCells, Memory: 64 << 20}
	sc, err := t.ScanSchema(spec)
	if err != nil {
		return nil, err
	}
	v := &valueCounter{counts: map[string]int64{}, random: rand.New(rand.NewPCG(1, 1)),
		r: &valuesResult{Column: column, Type: sc.Field(0).Type.String(), Top: []topValue{}, Bands: []valueBand{}}}
	v.wide = 1 << 16
	if t.rows() >= 0 {
		n := t.rows()
		v.r.Total = &n
		v.wide = max(1, (t.rows()+maxBands-1)/maxBands)
	}
	if info, err := s.tree.Stat(ctx, name.name); err == nil && !info.Dir && info.Size <= maxPaged && name.at == "" {
		if a, err := s.anatomyOf(ctx, info, false); err == nil {
			v.ends = a.pageEnds(column, t.Schema().NumFields() == 1, t.rows())
		}
	}
	v.r.ByPage = v.ends != nil
	lost := &losses{at: t.at}
	spec.Lost = lost.add
	end := time.Now().Add(valuesTime)
	v.r.Ended = true
	for b, err := range t.Scan(ctx, spec) {
		if err != nil {
			return nil, err
		}
		if v.add(b.Column(0)); time.Now().After(end) || len(v.r.Bands) > 10*maxBands {
			v.r.Ended = v.r.Rows == t.rows()
			break
		}
	}
	v.r.lostDoc = t.told(lost)
	v.finish()
	if names := pred.SplitPath(column); len(names) == 1 {
		v.r.Dictionary, err = dictionary(ctx, t, names[0])
	}
	return v.r, err
}

// valueCounter gathers what valuesResult says.
type valueCounter struct {
	r      *valuesResult
	counts map[string]int64 // by key
	wide   int64            // rows of a band
	ends   []int64          // of the bands that follow; nil: they are of wide rows
	sample []float64
	h      *histogram // nil: the type has none
	text   bool       // the bands are of texts or bytes
	random *rand.Rand
}

func (v *valueCounter) add(c arrow.Array) {
	values, where := plainOf(c)
	number, length, null, invalid := numbersOf(values), lengthsOf(values), cells.Nulls(c), fit.Invalid(c)
	v.text = length != nil
	size, what := number, "value"
	if length != nil {
		size, what = length, "length"
	}
	if v.h == nil && size != nil && values.DataType().ID() != arrow.BOOL {
		v.h = &histogram{What: what}
	}
	var buf []byte
	for i := range c.Len() {
		at := v.r.Rows
		v.r.Rows++
		if v.begins(at) {
			v.r.Bands = append(v.r.Bands, valueBand{From: at})
		}
		b := &v.r.Bands[len(v.r.Bands)-1]
		b.To = at + 1
		if null != nil && null(i) {
			v.r.Nulls++
			continue
		}
		if invalid != nil && invalid(i) {
			v.r.Altered++
		}
		buf = cells.AppendCell(buf[:0], c, i)
		v.count(buf)
		k := where(i)
		b.widen(values, k, number, buf)
		if v.h != nil {
			v.keep(size(k), buf)
		}
	}
}

// keyOf returns a short text for each different cell: of a long one the first bytes, and its hash.
func keyOf(cell []byte) []byte {
	if len(cell) <= maxKey {
		return cell
	}
	sum := sha256.Sum256(cell)
	return append(slices.Clone(cell[:maxKey]), sum[:]...)
}

func (v *valueCounter) count(cell []byte) {
	key := keyOf(cell)
	if _, ok := v.counts[string(key)]; ok || len(v.counts) < maxDistinct {
		v.counts[string(key)]++
	} else {
		v.r.DistinctMore = true
	}
}

// begins reports whether a band begins at a row.
func (v *valueCounter) begins(at int64) bool {
	if !v.r.ByPage {
		return at%v.wide == 0
	}
	if at > 0 && (len(v.ends) == 0 || at < v.ends[0]) {
		return false
	}
	if at > 0 {
		v.ends = v.ends[1:]
	}
	return true
}

// widen adds a value to a band. Values are compared as such: numbers to be drawn are not exact, and beginnings of texts
// may be the same.
func (b *valueBand) widen(c arrow.Array, i int, number func(int) float64, cell []byte) {
	lower, higher := extremes.At(c, i, &b.lo, &b.hi)
	for _, e := range []struct {
		new bool
		x   **float64
		to  *string
	}{{lower, &b.Min, &b.Lo}, {higher, &b.Max, &b.Hi}} {
		if !e.new {
			continue
		}
		*e.x, *e.to = new(float64), cutTo(cell, maxKey)
		if number != nil {
			**e.x = number(i)
		}
	}
}

// keep adds a number to the sample, in which every number is with the same probability.
func (v *valueCounter) keep(x float64, cell []byte) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return
	}
	h := v.h
	if h.Of == 0 || x < h.From {
		h.From, h.Lo = x, cutTo(cell, maxKey)
	}
	if h.Of == 0 || x > h.To {
		h.To, h.Hi = x, cutTo(cell, maxKey)
	}
	h.Of++
	if len(v.sample) < maxSample {
		v.sample = append(v.sample, x)
	} else if k := v.random.Int64N(h.Of); k < maxSample {
		v.sample[k] = x
	}
}

func (v *valueCounter) finish() {
	v.r.Distinct = len(v.counts)
	for value, n := range v.counts {
		v.r.Top = append(v.r.Top, topValue{cutTo([]byte(value), maxKey), n})
	}
	sorted.By(v.r.Top, func(a, b topValue) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Value, b.Value))
	})
	v.r.Top = v.r.Top[:min(len(v.r.Top), maxTop)]
	v.order()
	if v.text {
		drawTexts(v.r.Bands)
	} else {
		drawInfinite(v.r.Bands)
	}
	h := v.h
	if h == nil || h.Of == 0 {
		return
	}
	if h.What == "length" {
		h.Lo, h.Hi = "", ""
	}
	h.Counts, h.Sample = make([]int64, maxBins), len(v.sample)
	for _, x := range v.sample {
		k := 0
		if h.To > h.From {
			k = int((x/2 - h.From/2) / (h.To/2 - h.From/2) * maxBins) // halves, as the difference may overflow
		}
		h.Counts[min(max(k, 0), maxBins-1)]++
	}
	v.r.Histogram = h
}

// order counts the bands that are in order, and finds the least and the greatest value.
func (v *valueCounter) order() {
	var before *valueBand
	var least, greatest extremes.Value
	for i := range v.r.Bands {
		b := &v.r.Bands[i]
		if b.Min == nil {
			continue
		}
		if before == nil || b.lo.Under(&least) {
			least, v.r.Lo = b.lo, b.Lo
		}
		if before == nil || greatest.Under(&b.hi) {
			greatest, v.r.Hi = b.hi, b.Hi
		}
		if before != nil && !b.lo.Under(&before.hi) {
			v.r.Up++
		}
		if before != nil && !before.lo.Under(&b.hi) {
			v.r.Down++
		}
		before = b
	}
}

// ends returns the ends of bands that have values.
func ends(bands []valueBand) (numbers []*float64, texts []string) {
	for i := range bands {
		if b := &bands[i]; b.Min != nil {
			numbers, texts = append(numbers, b.Min, b.Max), append(texts, b.Lo, b.Hi)
		}
	}
	return numbers, texts
}

// drawTexts gives the ends of bands of texts numbers that have the order of what follows their common beginning.
func drawTexts(bands []valueBand) {
	numbers, texts := ends(bands)
	if len(texts) == 0 {
		return
	}
	lo, hi := slices.Min(texts), slices.Max(texts)
	same := 0
	for same < min(len(lo), len(hi)) && lo[same] == hi[same] {
		same++
	}
	for i, x := range numbers {
		*x = prefixNumber(texts[i][same:])
	}
}

// drawInfinite replaces infinite ends of bands, which JSON does not have, by the least or the greatest finite one.
func drawInfinite(bands []valueBand) {
	numbers, _ := ends(bands)
	lo, hi := 0.0, 0.0
	first := true
	for _, x := range numbers {
		if math.IsInf(*x, 0) {
			continue
		}
		if first {
			lo, hi, first = *x, *x, false
		}
		lo, hi = min(lo, *x), max(hi, *x)
	}
	for _, x := range numbers {
		*x = min(max(*x, lo), hi)
	}
}

// plainOf returns the values of an array whose type refers to another one, and where in them the value of a row is.
func plainOf(c arrow.Array) (values arrow.Array, where func(int) int) {
	switch c := c.(type) {
	case *array.Dictionary:
		values, where = plainOf(c.Dictionary())
		return values, func(i int) int { return where(c.GetValueIndex(i)) }
	case array.ExtensionArray:
		return plainOf(c.Storage())
	}
	return c, func(i int) int { return i }
}

// numbersOf returns a function for the values of an array as numbers, nil if they are none.
func numbersOf(c arrow.Array) func(int) float64 {
	switch c := c.(type) {
	case *array.Int8:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Int16:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Int32:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Int64:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Uint8:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Uint16:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Uint32:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Uint64:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Float32:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Float64:
		return func(i int) float64 { return c.Value(i) }
	case *array.Date32:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Date64:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Timestamp:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Time32:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Time64:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Duration:
		return func(i int) float64 { return float64(c.Value(i)) }
	case *array.Boolean:
		return func(i int) float64 {
			if c.Value(i) {
				return 1
			}
			return 0
		}
	case *array.Decimal128:
		scale := c.DataType().(*arrow.Decimal128Type).Scale
		return func(i int) float64 { return c.Value(i).ToFloat64(scale) }
	}
	return nil
}

// lengthsOf returns a function for how many bytes the values of an array have, nil if they are neither texts nor bytes.
func lengthsOf(c arrow.Array) func(int) float64 {
	switch c := c.(type) {
	case interface{ ValueLen(int) int }: // texts and bytes of any kind, and no others
		return func(i int) float64 { return float64(c.ValueLen(i)) }
	case *array.FixedSizeBinary:
		return func(i int) float64 { return float64(len(c.Value(i))) }
	}
	return nil
}

// prefixNumber returns a number that has the order of the first bytes of texts.
func prefixNumber(text string) float64 {
	var b [8]byte
	copy(b[:], text)
	return float64(binary.BigEndian.Uint64(b[:]) >> 11) // exact in a float64
}

// dictionaryDoc has entries of the dictionaries of a column.
type dictionaryDoc struct {
	Dictionaries int      `json:"dictionaries"`  // that were read
	Entries      []string `json:"entries"`       // of them, each once, in the order in which they are stored
	Cut          bool     `json:"cut,omitempty"` // there are more
}

// dictionary returns the entries of a column's dictionaries; nil: it has none.
func dictionary(ctx context.Context, t *opened, column string) (*dictionaryDoc, error) {
	d := &dictionaryDoc{Entries: []string{}}
	seen := map[string]bool{}
	err := t.Dictionaries(ctx, column, func(entries arrow.Array) bool {
		if d.Cut = d.Dictionaries == maxDictionaries; !d.Cut {
			d.Dictionaries++
			d.add(entries, seen)
		}
		return !d.Cut
	})
	if err != nil || d.Dictionaries == 0 {
		return nil, err
	}
	return d, nil
}

func (d *dictionaryDoc) add(entries arrow.Array, seen map[string]bool) {
	var buf []byte
	null := cells.Nulls(entries)
	for i := range entries.Len() {
		if null != nil && null(i) {
			continue
		}
		buf = cells.AppendCell(buf[:0], entries, i)
		key := keyOf(buf)
		if seen[string(key)] {
			continue
		}
		if d.Cut = len(d.Entries) == maxEntries; d.Cut {
			return
		}
		seen[string(key)] = true
		d.Entries = append(d.Entries, cutTo(buf, maxKey))
	}
}
