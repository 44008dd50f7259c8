package rewrite

import (
	"bytes"
	"context"
	"slices"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/pred"
)

// chunkPart copies pages of a column chunk, with the dictionary if they use it, and returns the ColumnChunk.
func (j *Job) chunkPart(ctx context.Context, out *counted, s *source, p *part, leaf int, c node) (node, error) {
	k := slices.Index(s.leaves, leaf)
	x, start, sum := &p.chunks[k], out.off, uint32(0)
	if err := s.makeSlices(ctx, p.group, leaf, x); err != nil {
		return c, err
	}
	var err error
	raw, values := int64(0), int64(0)
	if x.dict != nil {
		if sum, err = copySpan(ctx, out, s.r.File, x.dict.Whole(), sum); err != nil {
			return c, err
		}
		raw = x.dict.Header.Len + x.dict.Raw
	}
	first := out.off
	if sum, err = x.write(ctx, out, s.r.File, sum); err != nil {
		return c, err
	}
	for i, page := range x.pages {
		if cut := x.cut[i]; cut != nil {
			raw, values = raw+cut.raw, values+cut.values
		} else {
			raw, values = raw+page.Header.Len+page.Raw, values+page.Values
		}
	}
	j.made = append(j.made, madeChunk{leaf: k, at: start, size: out.off - start, sum: sum})
	m := *c.at(3)
	m.fields = slices.Clone(m.fields)
	m.set(5, i64(values))
	m.set(6, i64(raw))
	m.set(7, i64(out.off-start))
	m.set(9, i64(start))
	if d := m.at(11); d != nil && d.n > 0 && x.dict != nil { // for old writers the dictionary is the first data page
		m.set(9, i64(first))
		m.set(11, i64(start))
	} else {
		m.drop(11)
	}
	if err := s.restate(ctx, p.group, leaf, x, &m); err != nil {
		return c, err
	}
	return s.place(out, c, m)
}

// restate replaces the metadata of a column chunk with those of a part of it, as far as the page headers and indexes
// provide them.
func (s *source) restate(ctx context.Context, g, leaf int, x *chunkPart, m *node) error {
	index, err := s.r.ColumnIndex(ctx, g, leaf, x.of)
	if err != nil {
		return err
	}
	offsets, err := s.r.OffsetIndex(ctx, g, leaf)
	if err != nil {
		return err
	}
	said, sizes, encodings := m.at(12), m.at(16), m.at(13)
	m.drop(10, 12, 13, 16, 17)
	if said != nil {
		if now := s.statistics(said, index, leaf, x); len(now.fields) > 0 {
			m.set(12, now)
		}
	}
	if encodings != nil {
		m.set(13, x.encodings(encodings))
	}
	if sizes == nil {
		return nil
	}
	now := node{typ: isStruct}
	if offsets != nil && offsets.Bytes != nil && sizes.at(1) != nil {
		now.set(1, i64(sumOf(offsets.Bytes, x, 1, func(cut *slice) []int64 { return []int64{cut.strings} })[0]))
	}
	if index != nil {
		for id, of := range map[int16][]int64{2: index.RepLevels, 3: index.DefLevels} {
			if l := sizes.at(id); l != nil && len(l.items) > 0 && len(of) == x.of*len(l.items) {
				now.set(id, longs(sumOf(of, x, len(l.items), func(cut *slice) []int64 { return cut.levels[id-2] })))
			}
		}
	}
	if len(now.fields) > 0 {
		m.set(16, now)
	}
	return nil
}

// sumOf adds up the numbers of an index over the pages of a part; each page has width numbers. own returns those of a
// slice.
func sumOf(of []int64, x *chunkPart, width int, own func(*slice) []int64) []int64 {
	out := make([]int64, width)
	for i := range x.pages {
		numbers := of[(x.from+i)*width:][:width]
		if cut := x.cut[i]; cut != nil {
			numbers = own(cut)
		}
		for k := range out {
			out[k] += numbers[k]
		}
	}
	return out
}

func longs(of []int64) node {
	out := node{typ: isList, elem: isI64}
	for _, n := range of {
		out.items = append(out.items, i64(n))
	}
	return out
}

// encodings counts the pages of a part like the encoding_stats of all pages, which use several names for one encoding.
func (x *chunkPart) encodings(was *node) node {
	left := map[int64]int64{} // remaining data pages by encoding
	one := func(encoding int64) int64 {
		if meta.IsDictionary(int32(encoding)) {
			return meta.RleDictionary
		}
		return encoding
	}
	for _, p := range x.pages {
		left[one(int64(p.Encoding))]++
	}
	out := node{typ: isList, elem: isStruct}
	for _, e := range was.items {
		kind, encoding := e.at(1), e.at(2)
		if kind == nil || encoding == nil {
			continue
		}
		n := int64(0)
		switch kind.n {
		case meta.DictionaryPage:
			if x.dict != nil {
				n = 1
			}
		case meta.DataPage, meta.DataPageV2:
			n = left[one(encoding.n)]
			delete(left, one(encoding.n))
		}
		if n > 0 {
			e.fields = slices.Clone(e.fields)
			e.set(3, i32(n))
			out.items = append(out.items, e)
		}
	}
	return out
}

// statistics returns the statistics of a part. Bounds are the widest of its pages, from the column index or the page
// headers. Bounds of strings are not marked as exact, since writers truncate them there.
func (s *source) statistics(whole *node, index *meta.ColumnIndex, leaf int, x *chunkPart) node {
	out := node{typ: isStruct}
	if n, ok := x.nulls(index); ok && whole.at(3) != nil {
		out.set(3, i64(n))
	}
	if whole.at(5) == nil || whole.at(6) == nil || !s.r.Ordered(leaf) {
		return out
	}
	low, high := s.bounds(index, leaf, x)
	if low == nil || high == nil {
		return out
	}
	out.set(5, node{typ: isBytes, b: high})
	out.set(6, node{typ: isBytes, b: low})
	if t := s.r.Footer.Schema.Column(leaf).PhysicalType(); t == meta.TypeBytes || t == meta.TypeFixed {
		out.set(7, node{typ: isFalse})
		out.set(8, node{typ: isFalse})
	}
	return out
}

// nulls counts the nulls of a part; ok is false if their number is unknown.
func (x *chunkPart) nulls(index *meta.ColumnIndex) (n int64, ok bool) {
	if index != nil && index.Nulls != nil {
		return sumOf(index.Nulls, x, 1, func(cut *slice) []int64 { return []int64{cut.nulls} })[0], true
	}
	for i, p := range x.pages {
		switch {
		case x.cut[i] != nil:
			n += x.cut[i].nulls
		case p.Nulls >= 0:
			n += p.Nulls
		case p.Stats != nil && p.Stats.Nulls != nil:
			n += *p.Stats.Nulls
		default:
			return 0, false
		}
	}
	return n, true
}

// bounds returns the widest bounds of the pages of a part; nil if there are none that can be compared.
func (s *source) bounds(index *meta.ColumnIndex, leaf int, x *chunkPart) (low, high []byte) {
	l := s.r.LeafOf(leaf)
	var minValue, maxValue *pred.Value
	for i := range x.pages {
		said, empty := x.said(index, i)
		if empty {
			continue
		}
		if said == nil {
			return nil, nil
		}
		a, b := s.r.StatsValue(l, said.Min), s.r.StatsValue(l, said.Max)
		if a == nil || b == nil {
			return nil, nil
		}
		if minValue == nil {
			minValue, maxValue, low, high = a, b, said.Min, said.Max
		}
		below, ok := pred.Compare(*a, *minValue)
		above, ok2 := pred.Compare(*b, *maxValue)
		if !ok || !ok2 { // the type has no order, or the bound is NaN
			return nil, nil
		}
		if below < 0 {
			minValue, low = a, said.Min
		}
		if above > 0 {
			maxValue, high = b, said.Max
		}
	}
	return bytes.Clone(low), bytes.Clone(high)
}

// said returns the statistics of page i of a part from the column index or the page header; empty if it has only nulls.
func (x *chunkPart) said(index *meta.ColumnIndex, i int) (said *meta.Stats, empty bool) {
	if cut := x.cut[i]; cut != nil {
		return cut.bounds, cut.nulls == cut.values
	}
	if index != nil {
		return index.PageStats(x.from + i), index.NullPages[x.from+i]
	}
	said = x.pages[i].Stats
	return said, said != nil && said.Nulls != nil && *said.Nulls == x.pages[i].Values
}

// indexPart writes the column index of the pages of a part.
func (s *source) indexPart(ctx context.Context, out *counted, at fault.Span, leaf int, x *chunkPart) (n int64,
	err error) {
	index, err := s.index(ctx, at, "column_index")
	if err != nil {
		return 0, err
	}
	x.narrow(&index)
	if len(x.cut) > 0 {
		x.restateIndex(&index, s.comparer(leaf))
	}
	b := index.append(nil)
	_, err = out.Write(b)
	return int64(len(b)), err
}

// narrow reduces the lists of an index, which have the same number of items for each page, to the pages of a part.
func (x *chunkPart) narrow(index *node) {
	for i := range index.fields {
		l := &index.fields[i].v
		if l.typ == isList && len(l.items) > 0 && len(l.items)%x.of == 0 {
			width := len(l.items) / x.of
			l.items = l.items[x.from*width : (x.from+len(x.pages))*width]
		}
	}
}

// relocate sets the positions of a part's pages in an offset index, and their rows, counted from the part's first row.
func (x *chunkPart) relocate(index *node, row int64) {
	if pages := index.at(1); pages != nil {
		for i := range min(len(pages.items), len(x.at)) {
			p := &pages.items[i]
			p.set(1, i64(x.at[i].at))
			p.set(2, i32(x.at[i].size))
			if r := p.at(3); r != nil {
				r.n = max(0, r.n-row)
			}
		}
	}
	if l := index.at(2); l != nil {
		for i, cut := range x.cut {
			if i < len(l.items) {
				l.items[i] = i64(cut.strings)
			}
		}
	}
}

// restateIndex replaces the entries of sliced pages in a column index.
func (x *chunkPart) restateIndex(index *node, compare func(a, b []byte) (int, bool)) {
	for i, cut := range x.cut {
		for _, f := range index.fields {
			l := f.v.items
			if width := len(l) / len(x.pages); f.v.typ == isList && len(l) == width*len(x.pages) && width > 0 {
				x.restateItem(f.id, l[i*width:][:width], cut)
			}
		}
	}
	x.checkOrder(index, compare)
}

// restateItem replaces the item for one slice in a list of a column index.
func (x *chunkPart) restateItem(id int16, items []node, cut *slice) {
	low, high := []byte{}, []byte{}
	if cut.bounds != nil && cut.nulls < cut.values {
		low, high = cut.bounds.Min, cut.bounds.Max
	}
	switch id {
	case 1:
		if items[0].typ = isFalse; cut.nulls == cut.values {
			items[0].typ = isTrue
		}
	case 2:
		items[0].b = low
	case 3:
		items[0].b = high
	case 5:
		items[0].n = cut.nulls
	case 6, 7:
		for k := range items {
			items[k].n = cut.levels[id-6][k]
		}
	}
}

// checkOrder removes the claim that the bounds of pages are ordered unless it still holds: the bounds of a slice are
// exact, those of other pages may be truncated.
func (x *chunkPart) checkOrder(index *node, compare func(a, b []byte) (int, bool)) {
	order, null := index.at(4), index.at(1)
	if order == nil || order.n == 0 || null == nil {
		return
	}
	for _, id := range []int16{2, 3} {
		var last *node
		for i, l := 0, index.at(id).items; i < len(l); i++ {
			if null.items[i].typ == isTrue {
				continue
			}
			if last != nil {
				n, ok := compare(last.b, l[i].b)
				if !ok || order.n == 1 && n > 0 || order.n == 2 && n < 0 {
					order.n = 0
					return
				}
			}
			last = &l[i]
		}
	}
}

// comparer returns a function that compares values of a column in the form used in statistics; ok is false if they have
// no order.
func (s *source) comparer(leaf int) func(a, b []byte) (int, bool) {
	l := s.r.LeafOf(leaf)
	return func(a, b []byte) (int, bool) {
		x, y := s.r.StatsValue(l, a), s.r.StatsValue(l, b)
		if x == nil || y == nil {
			return 0, false
		}
		return pred.Compare(*x, *y)
	}
}
