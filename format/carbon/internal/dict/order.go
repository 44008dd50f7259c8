package dict

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
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/thrift"
	"stoa/pred"
	"stoa/wire"
)

// SortInfo is ColumnSortInfo.
type SortInfo struct {
	Codes []int32 // in the order of their values, null first
	Ranks []int32 // of each code, from 1
}

func parseSortInfo(r *thrift.Reader, name string) (s SortInfo) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			s.Codes = layout.ParseI32s(r, "sort_index")
		case 2:
			s.Ranks = layout.ParseI32s(r, "sort_index_inverted")
		}
	}
	return s
}

// check returns an error unless the two lists are each other's inverse.
func (s *SortInfo) check() error {
	if len(s.Codes) != len(s.Ranks) {
		return fault.Rel(0, 0, "sort_index_inverted", "expected %d ranks, found %d", len(s.Codes), len(s.Ranks))
	}
	for i, c := range s.Codes {
		if c < 1 || int(c) > len(s.Ranks) || s.Ranks[c-1] != int32(i+1) {
			return fault.Rel(0, 0, "sort_index", "code %d at position %d does not have the rank %d", c, i, i+1)
		}
	}
	return nil
}

// dictOrder is the order of a dictionary's values.
type dictOrder struct {
	values []schema.Constant
	codes  []int32 // by rank, from 0; without the codes of null and of values that are not of the type
	ranks  []int32 // by code, from 0; -1: the code has none
	From   string  // name of the sort index that was used; "": the values were sorted
}

// SortIndexNames are the possible names of the sort index of a dictionary of a size in bytes: writers before 0.2 had no
// size in the name.
func SortIndexNames(dict string, size int64) []string {
	id := strings.TrimSuffix(dict, DictExt)
	return []string{id + "_" + strconv.FormatInt(size, 10) + SortExt, id + SortExt}
}

// ReadSortIndex reads the sort index of the dictionary, and returns its name; nil if there is none.
func (g *GlobalDictionary) ReadSortIndex(ctx context.Context) (*SortInfo, string, error) {
	for _, name := range SortIndexNames(g.Dict.Object, g.Dict.Len) {
		obj, err := layout.OpenObject(ctx, g.Tree, name, g.Limits)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, name, err
		}
		b, err := obj.Read(ctx, 0, obj.At.Len, "")
		if err != nil {
			return nil, name, err
		}
		s, err := WholeSortInfo(wire.NewCursor(b, obj.At, ""))
		return &s, name, err
	}
	return nil, "", nil
}

// WholeSortInfo reads a whole .sortindex. The error is Corrupt if there are trailing bytes, or if the two lists
// contradict each other.
func WholeSortInfo(c *wire.Cursor) (SortInfo, error) {
	s := parseSortInfo(thrift.NewReader(c, thrift.Compact), "ColumnSortInfo")
	if c.Err() == nil && c.Left() > 0 {
		c.Fail(c.Pos(), c.Left(), "", "%d bytes after it", c.Left())
	}
	if c.Err() != nil {
		return s, c.Err()
	}
	return s, fault.Locate(s.check(), c.SpanOf(0, c.Pos()), true, "")
}

// ordered returns the order of the values, which is computed once. It uses the sort index if that agrees with the
// values, and sorts them otherwise.
func (g *GlobalDictionary) ordered(ctx context.Context) (*dictOrder, error) {
	g.sorting.Lock()
	defer g.sorting.Unlock()
	if g.Order != nil {
		return g.Order, nil
	}
	obj := layout.Object{Tree: g.Tree, At: fault.Span{Object: g.Dict.Object, Len: g.size}, Limits: g.Limits}
	b, err := obj.Read(ctx, 0, g.Dict.Len, "")
	if err != nil {
		return nil, err
	}
	texts, err := g.values(b)
	if err != nil {
		return nil, err
	}
	o := NewDictOrder(g.Col, texts)
	s, name, err := g.ReadSortIndex(ctx)
	if err != nil && !errors.Is(err, fault.Corrupt) {
		return nil, err
	}
	if err == nil && s != nil && o.Follows(g.Col, s.Codes) {
		o.From = name
	} else {
		o.sort(g.Col)
	}
	o.ranks = make([]int32, len(o.values))
	for i := range o.ranks {
		o.ranks[i] = -1
	}
	for r, c := range o.codes {
		o.ranks[c] = int32(r)
	}
	g.Order = o
	return o, nil
}

// NewDictOrder parses the texts of codes 1 to n as values; those not of the column's type are null.
func NewDictOrder(col *schema.Column, texts [][]byte) *dictOrder {
	o := &dictOrder{values: make([]schema.Constant, len(texts)+1)}
	o.values[0].Null = true
	for i, x := range texts {
		v := schema.Constant{Null: true}
		if i+1 != schema.NullCode && string(x) != schema.NullText {
			if p, err := schema.ParseValue(col, string(x), time.UTC); err == nil {
				v = p
			}
		}
		o.values[i+1] = v
	}
	return o
}

// Follows reports whether codes lists all codes in the order of their values, and if so makes it the order.
func (o *dictOrder) Follows(col *schema.Column, codes []int32) bool {
	if len(codes) != len(o.values)-1 {
		return false
	}
	for _, c := range codes {
		if o.values[c].Null {
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

func (o *dictOrder) sort(col *schema.Column) {
	o.codes = nil
	for c := range o.values {
		if !o.values[c].Null {
			o.codes = append(o.codes, int32(c))
		}
	}
	sortCodes(o.codes, func(a, b int32) int { return compare(col, o.values[a], o.values[b]) })
}

// sortCodes sorts codes stably, as uint32: the command has the code of that sort anyway.
func sortCodes(codes []int32, compare func(a, b int32) int) {
	list := make([]uint32, len(codes))
	for i, c := range codes {
		list[i] = uint32(c)
	}
	slices.SortStableFunc(list, func(a, b uint32) int { return compare(int32(a), int32(b)) })
	for i, c := range list {
		codes[i] = int32(c)
	}
}

// compare compares two values of a column's type.
func compare(col *schema.Column, a, b schema.Constant) int {
	switch col.Type {
	case layout.TypeString, layout.TypeVarchar, layout.TypeBinary:
		return cmp.Compare(a.S, b.S)
	case layout.TypeFloat, layout.TypeDouble:
		return cmp.Compare(a.F, b.F)
	case layout.TypeDecimal:
		return a.D.Cmp(b.D)
	}
	return cmp.Compare(a.I, b.I)
}

// Bounds returns the bounds of the values with the codes lo to hi, which are big-endian as in indexes; nil if unknown.
func (g *GlobalDictionary) Bounds(ctx context.Context, lo, hi []byte) (*pred.Bounds, error) {
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
		case r < 0 && c != schema.NullCode:
			return nil, nil // a value that is not of the type
		case r < 0:
		case low < 0:
			low, high = r, r
		default:
			low, high = min(low, r), max(high, r)
		}
	}
	out := &pred.Bounds{Nulls: -1, Rows: -1, By: byCodeSort}
	out.Ask = func(test *pred.Expr) pred.Verdict { return g.verdict(ctx, test, a, b) }
	if a > schema.NullCode {
		out.Nulls = 0
	}
	if low < 0 {
		return out, nil
	}
	t, err := g.Col.Arrow()
	if err != nil {
		return nil, err
	}
	out.Min, out.Max = o.values[o.codes[low]].Bounds(t).Min, o.values[o.codes[high]].Bounds(t).Max
	return out, nil
}
