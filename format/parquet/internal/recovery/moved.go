package recovery

import (
	"cmp"
	"math"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/read"
	"stoa/format/parquet/internal/verify"
	"stoa/internal/sorted"
)

// Where bytes were inserted or removed before an intact footer, the chunks before that place are where the footer says,
// and those after it are all as far from there as the last structure ends from the footer. The chunks at that place
// refute both. So the first chunk that is not where the footer says, and the last one that has not moved by that
// distance, enclose the place; if no such place explains every chunk, nothing is concluded. Chunks outside it are given
// only if their values also prove them (verify.Prove), because several places may have been damaged.

// fieldChunks are the chunks of a field in a row group.
type fieldChunks struct {
	group, field int
	off, end     int64
}

// moves is a file before whose footer bytes were inserted or removed.
type moves struct {
	*recoverer
	out    *read.Reader
	by     int64 // how far what follows the damage has moved
	all    []fieldChunks
	proven []bool // per fieldChunks, where it is taken to be

	from, to int // the damage is in these chunks, inclusive
}

// findMoved looks for the chunks of a file before whose footer bytes were inserted or removed. If it finds where that
// was, out gives those chunks that are proven.
func (s *recoverer) findMoved(o format.OpenOptions, out *read.Reader) (found bool, err error) {
	m := moves{recoverer: s, out: out, by: out.GapBeforeFooter()}
	if m.by == 0 || out.NoVerify || out.EncryptedFooter || len(out.Claimed) > 0 || !m.divide() {
		return false, nil
	}
	if in, err := m.indexInPlace(); in || err != nil {
		return false, err
	}
	o.Tracer = nil
	if found, err := m.enclose(o); !found || err != nil {
		return false, err
	}
	return true, m.give()
}

// divide collects the chunks in the order of the file. It is false if they are not clearly one after the other.
func (m *moves) divide() bool {
	for g, rg := range m.out.Footer.RowGroups {
		for f, leaves := range m.out.FieldLeaves {
			u := fieldChunks{group: g, field: f, off: math.MaxInt64}
			for _, k := range leaves {
				at := m.out.ChunkSpan(g, k)
				if rg.Columns[k].Encrypted || rg.Columns[k].Cipher != nil {
					return false
				}
				if at.Len > 0 {
					u.off, u.end = min(u.off, at.Off), max(u.end, at.End())
				}
			}
			if u.end > 0 {
				m.all = append(m.all, u)
			}
		}
	}
	sorted.By(m.all, func(a, b fieldChunks) int { return cmp.Compare(a.off, b.off) })
	for i := 1; i < len(m.all); i++ {
		if m.all[i].off < m.all[i-1].end {
			return false
		}
	}
	m.proven = make([]bool, len(m.all))
	return len(m.all) > 0
}

// indexInPlace reports whether an offset index is where the footer says: then nothing before it has moved.
func (m *moves) indexInPlace() (bool, error) {
	for _, u := range m.all {
		for _, k := range m.out.FieldLeaves[u.field] {
			x, err := m.out.OffsetIndex(m.ctx, u.group, k)
			if in := err == nil && m.out.IsIndexOf(x, u.group, k); in || err != nil && !isDamage(err) {
				return in, err
			}
		}
	}
	return false, nil
}

// enclose finds the damage. The last chunk before it and the first one behind it are not counted to it only if the
// pages between them show that it does not reach into them.
func (m *moves) enclose(o format.OpenOptions) (found bool, err error) {
	n := len(m.all)
	still, err := m.scan(o, 0, 0, 1)
	if err != nil {
		return false, err
	}
	gone, err := m.scan(o, m.by, n-1, -1)
	if err != nil {
		return false, err
	}
	if still == n && gone == n-1 { // all are in place, and what belongs to nothing lies behind them
		if follow, err := m.out.PagesFollow(m.ctx); !follow || err != nil {
			return false, err
		}
	}
	if m.from, m.to = min(still, gone), min(max(still, gone), n-1); still < gone &&
		m.all[gone].off-m.all[still].end >= -m.by { // more than could have been removed at one place
		return false, nil
	}
	m.from = max(m.from, 0)
	if m.from > 0 && !m.begins() {
		m.from--
	}
	if m.to+1 < n && m.mayHaveLost() {
		m.to++
	}
	return m.from == 0 || m.to+1 == n || m.all[m.from-1].end <= m.all[m.to+1].off+m.by, nil
}

// scan returns the first chunk from i on, in a direction, that is not at its place in the footer plus by.
func (m *moves) scan(o format.OpenOptions, by int64, i, step int) (int, error) {
	f, err := file.New(m.ctx, m.out.Target, o)
	if err != nil {
		return i, err
	}
	defer f.Close()
	f.Short = m.out.Short
	if err := f.Start(m.ctx); err != nil {
		return i, err
	}
	r := read.NewReader(f, map[file.ChunkKey]error{})
	for _, rg := range r.Footer.RowGroups {
		for _, c := range rg.Columns {
			move(c, by)
		}
	}
	for ; i >= 0 && i < len(m.all); i += step {
		u := m.all[i]
		if u.off+by < r.Base+int64(len(meta.Magic)) || u.end+by > r.FooterAt.Off {
			break
		}
		proof, err := verify.Prove(m.ctx, r, u.group, u.field)
		if err != nil {
			return i, err
		}
		if proof == verify.Refuted {
			break
		}
		m.proven[i] = proof == verify.Proven
	}
	return i, nil
}

// move changes where a chunk is. Its indexes may be anywhere.
func move(c *meta.ChunkMeta, by int64) {
	x := c.MetaData
	if x.DataPageOffset > 0 {
		x.DataPageOffset += by
	}
	if d := x.DictionaryPageOffset; d != nil && *d > 0 {
		moved := *d + by
		x.DictionaryPageOffset = &moved
	}
	c.OffsetIndexOffset, c.ColumnIndexOffset, x.BloomFilterOffset = nil, nil, nil
}

// begins reports whether the first damaged chunk begins where the footer says, so that the chunk before it is whole.
// Page headers have no names: only a header that can be no other of the chunk's is believed.
func (m *moves) begins() bool {
	u := m.all[m.from]
	for _, k := range m.out.FieldLeaves[u.field] {
		at, x := m.out.ChunkSpan(u.group, k), m.out.Footer.RowGroups[u.group].Columns[k].MetaData
		if at.Len == 0 || at.Off != u.off {
			continue
		}
		p, err := m.out.PlainPageHeader(m.ctx, at, "page", nil)
		if err != nil || !p.Plausible() || m.to+1 < len(m.all) && p.Header.End() > m.all[m.to+1].off+m.by {
			return false
		}
		if d := x.DictionaryPageOffset; d != nil && *d > 0 && *d < x.DataPageOffset {
			return p.Kind == meta.DictionaryPage && p.Whole().Len == x.DataPageOffset-*d
		}
		return p.IsData() && p.Values == x.NumValues && p.Whole().Len == at.Len &&
			p.Header.Len+p.Raw == x.TotalUncompressedSize
	}
	return false
}

// mayHaveLost reports whether the first chunk behind the damage may have lost its beginning, and begins with a page of
// a damaged chunk instead.
func (m *moves) mayHaveLost() bool {
	next := m.all[m.to+1].off + m.by
	if next <= m.all[m.from].off {
		return true
	}
	for _, u := range m.all[m.from : m.to+1] {
		for _, k := range m.out.FieldLeaves[u.field] {
			for p, err := range m.out.Pages(m.ctx, u.group, k) {
				if err != nil {
					break
				}
				if p.Header.Off == next {
					return true
				}
			}
		}
	}
	return false
}

// give makes out give the chunks that are proven, and reports what it found.
func (m *moves) give() error {
	before, err := m.out.ProvenBefore(m.ctx)
	if err != nil {
		return err
	}
	m.out.Lost = map[file.ChunkKey]error{}
	for i, u := range m.all {
		for _, k := range m.out.FieldLeaves[u.field] {
			at, by := m.out.ChunkSpan(u.group, k), int64(0)
			given := m.proven[i] || i < m.from && (u.end <= before || m.by > -smallest && m.by < smallest)
			if i > m.to {
				by = m.by
			}
			if given = given && (i < m.from || i > m.to); !given {
				m.out.Lost[file.ChunkKey{Group: u.group, Leaf: k}] = m.notProven(at, u.group, k, i)
			}
			move(m.out.Footer.RowGroups[u.group].Columns[k], by)
		}
	}
	first, last := m.all[m.from].off, max(m.all[m.to].end, m.all[m.to].end+m.by)
	what := "inserted"
	if m.by < 0 {
		what = "removed"
	}
	at := fault.Span{Object: m.out.Target.Name, Off: first, Len: last - first}
	m.Rows("parquet.recovered", at, [2]int64{-1, -1}, 0,
		"%d bytes were %s here: what follows is read from where it is now", max(m.by, -m.by), what)
	return nil
}

// smallest is less than a page has: pages that have moved by less are nowhere where another page should be.
const smallest = 12

func (m *moves) notProven(at fault.Span, group, leaf, i int) error {
	what := "nothing proves that the pages here are those of the column: the footer has no statistics that do"
	if i >= m.from && i <= m.to {
		what = "bytes were inserted or removed here"
	}
	return fault.Corruptf(at, meta.IndexPath(group, leaf, ""), "%s", what)
}
