package table

import (
	"bytes"
	"context"
	"math"
	"sort"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/codes"
	"stoa/pred"
	"stoa/vec"
)

// keySpan is a range of encoded keys, [low, high); a nil high is unbounded. Encoded keys compare as byte strings in
// which the columns follow each other, so a predicate on the first columns is a range, too.
type keySpan struct {
	low, high []byte
	exact     []byte // the only possible key; nil if there may be others
	empty     bool
}

// spanOf returns a range of keys of the given columns outside of which e cannot be true. It is derived from equalities
// on the first columns and a range of the next column.
func (t *Table) spanOf(e *pred.Expr, columns []int) (k keySpan) {
	if e == nil {
		return k
	}
	var prefix []byte
	for i, c := range columns {
		col := &t.Stored.Columns[c]
		low, high, lowIn, highIn := e.KeyRange(pred.JoinPath(col.Name))
		if low == nil && high == nil {
			break
		}
		if low != nil && low.Kind == pred.KindNull || high != nil && high.Kind == pred.KindNull {
			return keySpan{empty: true}
		}
		last := i == len(columns)-1
		lo, okLo := t.encoded(prefix, c, low, last)
		hi, okHi := t.encoded(prefix, c, high, last)
		if okLo && okHi && lowIn && highIn && bytes.Equal(lo, hi) {
			if prefix = lo; last {
				return keySpan{low: lo, high: append(bytes.Clone(lo), 0), exact: lo}
			}
			continue
		}
		k = keySpan{low: prefix, high: after(prefix)}
		if okLo {
			if k.low = lo; !lowIn {
				k.low = keyAfter(lo, last)
			}
		}
		if okHi {
			if k.high = hi; highIn {
				k.high = keyAfter(hi, last)
			}
		}
		k.empty = k.high != nil && bytes.Compare(k.low, k.high) >= 0
		return k
	}
	if len(prefix) > 0 {
		k = keySpan{low: prefix, high: after(prefix)}
	}
	return k
}

// encoded appends the encoded literal of column c to a clone of prefix; false if there is no literal, or it has no
// encoding in the column's type.
func (t *Table) encoded(prefix []byte, c int, v *pred.Value, last bool) ([]byte, bool) {
	if v == nil {
		return nil, false
	}
	col := &t.Stored.Columns[c]
	stored, ok := cfile.Stored(col.Type, t.Cols[c].Type, *v)
	if !ok {
		return nil, false
	}
	key, err := cfile.AppendKey(bytes.Clone(prefix), col.Type, stored, last)
	return key, err == nil
}

// keyAfter returns the first key after key if key is whole, or else the first key after all keys that begin with it.
func keyAfter(key []byte, whole bool) []byte {
	if whole {
		return append(bytes.Clone(key), 0)
	}
	return after(key)
}

// after returns the first byte string after all byte strings that begin with prefix; nil if there is none.
func after(prefix []byte) []byte {
	out := bytes.Clone(prefix)
	for len(out) > 0 {
		if out[len(out)-1] < 0xff {
			out[len(out)-1]++
			return out
		}
		out = out[:len(out)-1]
	}
	return nil
}

// misses reports whether the span contains no key of [low, high]. Both bounds are inclusive; nil means unknown.
func (k *keySpan) misses(low, high []byte) bool {
	return k.empty || k.high != nil && low != nil && bytes.Compare(low, k.high) >= 0 || high != nil &&
		bytes.Compare(high, k.low) < 0
}

// Narrow finds the rows whose keys e allows: by a rowset's first and last key, by its bloom filter if e allows only one
// key, and then by the value index of its keys. Key columns never change, so overlays do not matter. A damaged index
// narrows nothing.
func (t *Table) Narrow(ctx context.Context, g format.RowGroup, e *pred.Expr) (vec.Ranges, error) {
	all := vec.Ranges{{From: 0, To: math.MaxInt64}}
	keys := make([]int, t.Stored.NumKeys)
	for i := range keys {
		keys[i] = i
	}
	k := t.spanOf(e, keys)
	if k.empty {
		format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "contradiction"})
		return nil, nil
	}
	tb, s, err := t.set(ctx, g)
	if err != nil || k.low == nil && k.high == nil {
		return all, err
	}
	if s == nil {
		format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "keys of the log's rows"})
		return vec.Ranges{}.Add(tb.logged.between(k)), nil
	}
	if k.misses(s.Low, s.High) {
		format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "first and last key"})
		return nil, nil
	}
	if k.exact != nil && !s.Bloom.IsNull() {
		switch may, err := t.mayContain(ctx, s, k.exact); {
		case err != nil && !Damaged(err):
			return nil, err
		case err == nil && !may:
			format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "bloom filter"})
			return nil, nil
		}
	}
	r, err := t.between(ctx, s, k)
	switch {
	case err == nil:
		format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "key index"})
		return vec.Ranges{}.Add(r), nil
	case Damaged(err):
		return all, nil
	}
	return nil, err
}

// mayContain looks a key up in the rowset's bloom filter. If the filter is another rowset's, the error is Corrupt.
func (t *Table) mayContain(ctx context.Context, s *RowSet, key []byte) (bool, error) {
	b, err := t.Bloom(ctx, s)
	if err != nil {
		return false, err
	}
	may, err := b.MayContain(ctx, key)
	if may || err != nil {
		return may, err
	}
	err = t.CheckBloom(ctx, s, b)
	if err != nil && Damaged(err) {
		s.Tablet.keep(codes.Finding("kudu.bloom.disagrees", err, s.Tablet.ID))
	}
	return false, err
}

// Bloom opens the rowset's bloom file.
func (t *Table) Bloom(ctx context.Context, s *RowSet) (*cfile.Bloom, error) {
	b, _, err := opened(ctx, t, s, s.Bloom,
		func(ctx context.Context, src Source, at fault.Span, o format.OpenOptions) (*cfile.Bloom, error) {
			return cfile.OpenBloomAt(ctx, src, at, o)
		})
	return b, err
}

// between returns the rows of a rowset whose keys lie in a span.
func (t *Table) between(ctx context.Context, s *RowSet, k keySpan) (vec.Range, error) {
	x := t.keyIndex(ctx, s)
	if x.err != nil {
		return vec.Range{}, x.err
	}
	r := x.open[0]
	var err error
	rows := vec.Range{From: 0, To: r.Len()}
	if len(k.low) > 0 {
		if rows.From, _, err = x.find(ctx, k.low); err != nil {
			return rows, err
		}
	}
	if k.high != nil {
		if rows.To, _, err = x.find(ctx, k.high); err != nil {
			return rows, err
		}
	}
	if s.Rows >= 0 && r.Len() != s.Rows {
		return rows, fault.Corruptf(r.FooterAt(), "footer.num_values", "expected %d, the rows of the rowset, found %d",
			s.Rows, r.Len())
	}
	return rows, nil
}

// between returns the rows whose keys lie in a span.
func (m *logRows) between(k keySpan) vec.Range {
	at := func(key []byte) int64 {
		return int64(sort.Search(len(m.keys), func(i int) bool { return bytes.Compare(m.keys[i], key) >= 0 }))
	}
	r := vec.Range{From: at(k.low), To: int64(len(m.keys))}
	if k.high != nil {
		r.To = at(k.high)
	}
	return r
}

// outside returns the reason why e cannot be true in a tablet: its key range or hash bucket excludes the keys that e
// allows. "" means that e may be true.
func (t *Table) outside(tb *Tablet, e *pred.Expr) string {
	s := &tb.Partitioning
	if e == nil || !s.Stored {
		return ""
	}
	if columns, ok := t.positions(s.Range); ok && len(columns) > 0 {
		k := t.spanOf(e, columns)
		lower, upper := tb.Partition.Lower(), tb.Partition.Upper()
		if k.empty || k.high != nil && bytes.Compare(k.high, lower) <= 0 || len(upper) > 0 &&
			bytes.Compare(k.low, upper) >= 0 {
			return "partition's key range"
		}
	}
	for i, d := range s.HashOf(tb.Partition.Lower()) {
		columns, ok := t.positions(d.Columns)
		if !ok || i >= len(tb.Partition.Buckets) {
			continue
		}
		if k := t.spanOf(e, columns); k.exact != nil && d.Buckets > 0 && d.Bucket(k.exact) != tb.Partition.Buckets[i] {
			return "hash bucket"
		}
	}
	return ""
}

// positions returns the indexes of the columns with the given ids; false if one of them does not exist.
func (t *Table) positions(ids []int32) ([]int, bool) {
	out := make([]int, len(ids))
	for i, id := range ids {
		if out[i] = t.Stored.Find(id); out[i] < 0 {
			return nil, false
		}
	}
	return out, true
}
