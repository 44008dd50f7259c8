package carbon

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/pred"
	"stoa/wire"
)

// sortInfo is ColumnSortInfo.
type sortInfo struct {
	codes []int32 // in the order of their values, null first
	ranks []int32 // of each code, from 1
}

func parseSortInfo(r *thrift.Reader, name string) (s sortInfo) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			s.codes = parseI32s(r, "sort_index")
		case 2:
			s.ranks = parseI32s(r, "sort_index_inverted")
		}
	}
	return s
}

// check says whether the two lists are each other's inverse.
func (s *sortInfo) check() error {
	if len(s.codes) != len(s.ranks) {
		return fault.Rel(0, 0, "sort_index_inverted", "%d ranks of %d codes", len(s.ranks), len(s.codes))
	}
	for i, c := range s.codes {
		if c < 1 || int(c) > len(s.ranks) || s.ranks[c-1] != int32(i+1) {
			return fault.Rel(0, 0, "sort_index", "code %d, which is at place %d, is not among the ranks there", c, i+1)
		}
	}
	return nil
}

// dictOrder is the order of a dictionary's values.
type dictOrder struct {
	values []constant
	codes  []int32 // by rank, from 0; those of null and of what is no value of the type are left out
	ranks  []int32 // by code; -1: left out
	from   string  // the sort index that told; "" if the values were sorted here
}

// sortIndexName is the sort index for a dictionary of some size; writers before 0.2 had no size in the name.
func sortIndexNames(dict string, size int64) []string {
	id := strings.TrimSuffix(dict, dictExt)
	return []string{id + "_" + strconv.FormatInt(size, 10) + sortExt, id + sortExt}
}

// readSortIndex reads a sort index; nil if there is none.
func (g *globalDictionary) readSortIndex(ctx context.Context) (*sortInfo, string, error) {
	for _, name := range sortIndexNames(g.dict.Object, g.dict.Len) {
		obj, err := openObject(ctx, g.tree, name, g.limits)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, name, err
		}
		b, err := obj.read(ctx, 0, obj.at.Len, "")
		if err != nil {
			return nil, name, err
		}
		s, err := wholeSortInfo(wire.NewCursor(b, obj.at, ""))
		return &s, name, err
	}
	return nil, "", nil
}

// wholeSortInfo reads a whole .sortindex.
func wholeSortInfo(c *wire.Cursor) (sortInfo, error) {
	s := parseSortInfo(thrift.NewReader(c, thrift.Compact), "ColumnSortInfo")
	if c.Err() == nil && c.Left() > 0 {
		c.Fail(c.Pos(), c.Left(), "", "%d bytes behind it", c.Left())
	}
	if c.Err() != nil {
		return s, c.Err()
	}
	return s, fault.Locate(s.check(), c.SpanOf(0, c.Pos()), true, "")
}

// ordered gives the order of the values. The sort index is believed if it is in the order of the values; else, or if there is none,
// the values are sorted.
func (g *globalDictionary) ordered(ctx context.Context) (*dictOrder, error) {
	g.sorting.Lock()
	defer g.sorting.Unlock()
	if g.order != nil {
		return g.order, nil
	}
	obj := object{tree: g.tree, at: fault.Span{Object: g.dict.Object, Len: g.size}, limits: g.limits}
	b, err := obj.read(ctx, 0, g.dict.Len, "")
	if err != nil {
		return nil, err
	}
	texts, err := g.values(b)
	if err != nil {
		return nil, err
	}
	o := newDictOrder(g.col, texts)
	s, name, err := g.readSortIndex(ctx)
	if err != nil && !errors.Is(err, fault.Corrupt) {
		return nil, err
	}
	if err == nil && s != nil && o.follows(g.col, s.codes) {
		o.from = name
	} else {
		o.sort(g.col)
	}
	o.ranks = make([]int32, len(o.values))
	for i := range o.ranks {
		o.ranks[i] = -1
	}
	for r, c := range o.codes {
		o.ranks[c] = int32(r)
	}
	g.order = o
	return o, nil
}

// newDictOrder reads the texts of codes 1 to n as values; what is none of the column's type is null.
func newDictOrder(col *column, texts [][]byte) *dictOrder {
	o := &dictOrder{values: make([]constant, len(texts)+1)}
	o.values[0].null = true
	for i, x := range texts {
		v := constant{null: true}
		if i+1 != nullCode && string(x) != nullText {
			if p, err := parseValue(col, string(x), time.UTC); err == nil {
				v = p
			}
		}
		o.values[i+1] = v
	}
	return o
}

// follows takes over codes if they are all the codes in the order of their values.
func (o *dictOrder) follows(col *column, codes []int32) bool {
	if len(codes) != len(o.values)-1 {
		return false
	}
	for _, c := range codes {
		if o.values[c].null {
			continue
		}
		if k := len(o.codes); k > 0 && compare(col, o.values[o.codes[k-1]], o.values[c]) > 0 {
			o.codes = nil
			return false
		}
		o.codes = append(o.codes, c)
	}
	return true
}

func (o *dictOrder) sort(col *column) {
	o.codes = nil
	for c := range o.values {
		if !o.values[c].null {
			o.codes = append(o.codes, int32(c))
		}
	}
	slices.SortStableFunc(o.codes, func(a, b int32) int { return compare(col, o.values[a], o.values[b]) })
}

// compare is the order of two values of a column's type.
func compare(col *column, a, b constant) int {
	switch col.typ {
	case typeString, typeVarchar, typeBinary:
		return cmp.Compare(a.s, b.s)
	case typeFloat, typeDouble:
		return cmp.Compare(a.f, b.f)
	case typeDecimal:
		return a.d.Cmp(b.d)
	}
	return cmp.Compare(a.i, b.i)
}

// bounds are the least and the greatest value of the codes from lo to hi, which are big-endian as the indexes have them. nil is not
// known.
func (g *globalDictionary) bounds(ctx context.Context, lo, hi []byte) (*pred.Bounds, error) {
	a, b, ok := codeRange(lo, hi)
	if !ok {
		return nil, nil
	}
	o, err := g.ordered(ctx)
	if err != nil || b >= uint32(len(o.values)) {
		return nil, err
	}
	low, high := int32(-1), int32(-1)
	for c := a; c <= b; c++ {
		switch r := o.ranks[c]; {
		case r < 0 && c != nullCode:
			return nil, nil // a value that is none of the type
		case r < 0:
		case low < 0:
			low, high = r, r
		default:
			low, high = min(low, r), max(high, r)
		}
	}
	out := &pred.Bounds{Nulls: -1, Rows: -1, By: byCodeSort}
	out.Ask = func(test *pred.Expr) pred.Verdict { return g.ask(ctx, test, a, b) }
	if a > nullCode {
		out.Nulls = 0
	}
	if low < 0 {
		return out, nil
	}
	t, err := g.col.arrow()
	if err != nil {
		return nil, err
	}
	out.Min, out.Max = o.values[o.codes[low]].bounds(t).Min, o.values[o.codes[high]].bounds(t).Max
	return out, nil
}
