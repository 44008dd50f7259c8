package scan

import (
	"maps"

	"stoa/internal/scan/internal/plan"
	"stoa/pred"
)

// Pack is pieces that are read together.
type Pack struct {
	Sources []int // of the pieces, by number
	Pieces  []plan.Piece
	Bytes   int64
	Rows    int64 // -1: not known
	Exact   bool
	Bounds  map[string]pred.Bounds
	Keys    map[string]pred.Value // partition columns that have one value in all rows
	Bucket  *int                  // of all rows, from 0; nil: of several, or not known
}

// Packer packs pieces, in order, until there are about Target bytes.
type Packer struct {
	Target     int64
	Apart      bool     // pieces with different keys or buckets are in different packs
	Single     bool     // pieces of different parts are in different packs
	Bucketed   bool     // the pieces are of one table: others may have other buckets
	Partitions []string // partition columns of the pieces that follow
	Yield      func(Pack) bool
	now        *Pack
	bucket     int // of now: see format.Part
}

// keys returns the partition columns that have one value. All rows of a directory have the same: that a bound is known
// means that it is not null.
func (c *Packer) keys(known map[string]pred.Bounds) (out map[string]pred.Value) {
	for _, name := range c.Partitions {
		if b, ok := known[name]; ok && b.Min != nil && b.Min.Equal(*b.Max) {
			if out == nil {
				out = map[string]pred.Value{}
			}
			out[name] = *b.Min
		}
	}
	return out
}

// Add adds a piece of a source. It returns false once Yield does.
func (c *Packer) Add(source int, p Cutting) bool {
	keys := c.keys(p.Bounds)
	apart := c.now != nil && (c.Apart && (c.bucket != p.Bucket || !maps.Equal(keys, c.now.Keys)) ||
		c.Single && (c.now.Sources[0] != source || c.now.Pieces[0].Part != p.Part))
	if c.now != nil && (c.now.Bytes+p.Piece.Bytes > c.Target || apart) && !c.Flush() {
		return false
	}
	if c.now == nil {
		c.now = &Pack{Exact: true, Keys: keys, Bounds: maps.Clone(p.Bounds)}
		c.bucket = p.Bucket
	} else {
		c.now.Bounds = mergeBounds(c.now.Bounds, p.Bounds)
		maps.DeleteFunc(c.now.Keys, func(name string, v pred.Value) bool {
			other, ok := keys[name]
			return !ok || !other.Equal(v)
		})
		if c.bucket != p.Bucket {
			c.bucket = 0
		}
	}
	c.now.Sources = append(c.now.Sources, source)
	c.now.Pieces = append(c.now.Pieces, p.Piece)
	c.now.Bytes += p.Piece.Bytes
	c.now.Exact = c.now.Exact && p.Exact
	if c.now.Rows >= 0 {
		c.now.Rows += p.Count
	}
	if p.Count < 0 {
		c.now.Rows = -1
	}
	return true
}

// Flush yields the last pack.
func (c *Packer) Flush() bool {
	if c.now == nil {
		return true
	}
	p := *c.now
	c.now = nil
	if b := c.bucket - 1; b >= 0 && c.Bucketed {
		p.Bucket = &b
	}
	maps.DeleteFunc(p.Bounds, func(_ string, b pred.Bounds) bool { return b.Min == nil && b.Nulls < 0 })
	return c.Yield(p)
}

// mergeBounds returns what is known about the rows of both. It may change a.
func mergeBounds(a, b map[string]pred.Bounds) map[string]pred.Bounds {
	for name, x := range a {
		y, ok := b[name]
		if !ok {
			delete(a, name)
			continue
		}
		if x.Nulls += y.Nulls; x.Nulls < y.Nulls || y.Nulls < 0 {
			x.Nulls = -1
		}
		low, high := 0, 0
		known := x.Min != nil && y.Min != nil
		if known {
			var ok bool
			low, known = pred.Compare(*y.Min, *x.Min)
			high, ok = pred.Compare(*y.Max, *x.Max)
			known = known && ok
		}
		switch {
		case !known:
			x.Min, x.Max = nil, nil
		default:
			if low < 0 {
				x.Min = y.Min
			}
			if high > 0 {
				x.Max = y.Max
			}
		}
		x.Exact = x.Exact && y.Exact && known
		a[name] = x
	}
	return a
}
