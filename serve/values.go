package serve

import (
	"cmp"
	"context"
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
	"stoa/internal/sorted"
	"stoa/region"
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
	maxKey      = 200 // bytes of a value that are compared and shown
)

// valuesResult says what a column holds.
type valuesResult struct {
	Column string `json:"column"`
	Type   string `json:"type"`
	Rows   int64  `json:"rows"` // that were looked at
	Total  *int64 `json:"total"`
	Nulls  int64  `json:"nulls"`
	Lost   int64  `json:"lost,omitempty"` // runs of rows that could not be read; their cells count as nulls
	// Distinct values; DistinctMore: there are more, and Top is of those that were seen first.
	Distinct     int        `json:"distinct"`
	DistinctMore bool       `json:"distinct_more,omitempty"`
	Top          []topValue `json:"top"`
	Histogram    *histogram `json:"histogram"`
	// Bands are in the order of the rows: one a page (ByPage), or of equal numbers of rows.
	Bands  []valueBand `json:"bands"`
	ByPage bool        `json:"by_page"`
}

type topValue struct {
	Value string `json:"value"`
	N     int64  `json:"n"`
}

// histogram counts values by size, or texts by length, between From and To.
type histogram struct {
	What   string  `json:"what"` // value or length
	From   float64 `json:"from"`
	To     float64 `json:"to"`
	Counts []int64 `json:"counts"`
	Sample int     `json:"sample"` // of how many values
}

// valueBand is the least and the greatest value of the rows [From, To), as a number that has their order, and as text.
type valueBand struct {
	From int64    `json:"from"`
	To   int64    `json:"to"`
	Min  *float64 `json:"min"`
	Max  *float64 `json:"max"`
	Lo   string   `json:"lo"`
	Hi   string   `json:"hi"`
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
	if t.rows >= 0 {
		v.r.Total = &t.rows
		v.wide = max(1, (t.rows+maxBands-1)/maxBands)
	}
	if info, err := s.tree.Stat(ctx, name.name); err == nil && !info.Dir && info.Size <= maxPaged && name.at == "" {
		if a, err := s.anatomyOf(ctx, info, false); err == nil {
			v.ends = a.pageEnds(column, t.Schema().NumFields() == 1, t.rows)
		}
	}
	v.r.ByPage = v.ends != nil
	spec.Lost = func(region.Loss) { v.r.Lost++ }
	end := time.Now().Add(valuesTime)
	for b, err := range t.Scan(ctx, spec) {
		if err != nil {
			return nil, err
		}
		if v.add(b.Column(0)); time.Now().After(end) || len(v.r.Bands) > 10*maxBands {
			break
		}
	}
	v.finish()
	return v.r, nil
}

// valueCounter gathers what valuesResult says.
type valueCounter struct {
	r      *valuesResult
	counts map[string]int64
	wide   int64   // rows of a band
	ends   []int64 // of the bands that follow; nil: they are of wide rows
	sample []float64
	seen   int64 // values that sample is of
	length bool  // sample has lengths of texts
	random *rand.Rand
}

func (v *valueCounter) add(c arrow.Array) {
	number := numbersOf(c)
	v.length = number == nil
	var buf []byte
	for i := range c.Len() {
		at := v.r.Rows
		v.r.Rows++
		if v.begins(at) {
			v.r.Bands = append(v.r.Bands, valueBand{From: at})
		}
		b := &v.r.Bands[len(v.r.Bands)-1]
		b.To = at + 1
		if c.IsNull(i) {
			v.r.Nulls++
			continue
		}
		buf = cells.AppendCell(buf[:0], c, i)
		size, order := float64(len(buf)), prefixNumber(buf)
		if number != nil {
			order = number(i)
			size = order
		}
		key := buf[:min(len(buf), maxKey)]
		if _, ok := v.counts[string(key)]; ok || len(v.counts) < maxDistinct {
			v.counts[string(key)]++
		} else {
			v.r.DistinctMore = true
		}
		if !math.IsNaN(order) && !math.IsInf(order, 0) {
			b.widen(order, key)
			v.keep(size)
		}
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

func (b *valueBand) widen(x float64, text []byte) {
	if b.Min == nil || x < *b.Min {
		b.Min, b.Lo = &x, cut(text)
	}
	if b.Max == nil || x > *b.Max {
		b.Max, b.Hi = &x, cut(text)
	}
}

// keep adds a number to the sample, in which every number is with the same probability.
func (v *valueCounter) keep(x float64) {
	v.seen++
	if len(v.sample) < maxSample {
		v.sample = append(v.sample, x)
	} else if k := v.random.Int64N(v.seen); k < maxSample {
		v.sample[k] = x
	}
}

func (v *valueCounter) finish() {
	v.r.Distinct = len(v.counts)
	for value, n := range v.counts {
		v.r.Top = append(v.r.Top, topValue{cut([]byte(value)), n})
	}
	sorted.By(v.r.Top, func(a, b topValue) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Value, b.Value))
	})
	v.r.Top = v.r.Top[:min(len(v.r.Top), maxTop)]
	if len(v.sample) == 0 {
		return
	}
	h := &histogram{What: "value", From: slices.Min(v.sample), To: slices.Max(v.sample), Sample: len(v.sample)}
	if v.length {
		h.What = "length"
	}
	h.Counts = make([]int64, maxBins)
	for _, x := range v.sample {
		k := 0
		if h.To > h.From {
			k = int((x/2 - h.From/2) / (h.To/2 - h.From/2) * maxBins) // halves, as the difference may overflow
		}
		h.Counts[min(max(k, 0), maxBins-1)]++
	}
	v.r.Histogram = h
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
	case *array.Decimal128:
		scale := c.DataType().(*arrow.Decimal128Type).Scale
		return func(i int) float64 { return c.Value(i).ToFloat64(scale) }
	}
	return nil
}

// prefixNumber returns a number that has the order of the first bytes of texts.
func prefixNumber(text []byte) float64 {
	var b [8]byte
	copy(b[:], text)
	return float64(binary.BigEndian.Uint64(b[:]) >> 11) // exact in a float64
}
