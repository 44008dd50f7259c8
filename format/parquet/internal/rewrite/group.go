package rewrite

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/meta"
	"stoa/store"
)

// trailers are functions that write the structures after all pages: Bloom filters, column indexes, offset indexes.
type trailers [3][]func(*counted) error

func (l *trailers) add(kind int, f func(*counted) error) { l[kind] = append(l[kind], f) }

// group copies the pages of a row group. It returns the RowGroup and the functions that write its filters and indexes
// after all pages.
func (j *Job) group(ctx context.Context, out *counted, s *source, p *part, number int) (x node,
	after trailers, err error) {
	g := p.group
	x = s.footer.at(4).items[g]
	x.fields = slices.Clone(x.fields)
	chunks := node{typ: isList, elem: isStruct}
	first, raw, stored := int64(math.MaxInt64), int64(0), int64(0)
	all := x.at(1).items
	for _, leaf := range s.leaves {
		m := s.r.Footer.RowGroups[g].Columns[leaf].MetaData
		if m.TotalCompressedSize > 0 {
			first = min(first, out.off)
		}
		var c node
		if p.chunks != nil {
			c, err = j.chunkPart(ctx, out, s, p, leaf, all[leaf])
		} else {
			c, err = j.chunk(ctx, out, s, g, leaf, all[leaf])
		}
		if err != nil {
			return x, after, err
		}
		if raw, stored = raw+m.TotalUncompressedSize, stored+m.TotalCompressedSize; p.chunks != nil {
			raw += c.at(3).at(6).n - m.TotalUncompressedSize
			stored += c.at(3).at(7).n - m.TotalCompressedSize
		}
		chunks.items = append(chunks.items, c)
		j.made[len(j.made)-1].group = number
	}
	for i, leaf := range s.leaves {
		var cut *chunkPart
		if p.chunks != nil {
			cut = &p.chunks[i]
		}
		s.addTrailers(ctx, g, leaf, cut, p.rows.From, &chunks.items[i], &after)
	}
	x.set(1, chunks)
	if p.chunks != nil {
		x.set(3, i64(p.rows.Len()))
	}
	if n := x.at(2); n != nil && n.n != 0 {
		x.set(2, i64(raw))
	}
	if n := x.at(5); n != nil && n.n != 0 && stored > 0 {
		x.set(5, i64(first))
	}
	if n := x.at(6); n != nil && n.n != 0 {
		x.set(6, i64(stored))
	}
	if x.at(7) != nil && number <= math.MaxInt16 {
		x.set(7, node{typ: isI16, n: int64(number)})
	} else {
		x.drop(7)
	}
	s.sorting(&x)
	return x, after, nil
}

// sorting keeps the sorting columns before the first one that is dropped.
func (s *source) sorting(x *node) {
	before := x.at(4)
	if before == nil {
		return
	}
	now := node{typ: isList, elem: isStruct}
	for _, c := range before.items {
		k := -1
		if at := c.at(1); at != nil {
			k = slices.Index(s.leaves, int(at.n))
		}
		if k < 0 {
			break
		}
		c.fields = slices.Clone(c.fields)
		c.set(1, i32(int64(k)))
		now.items = append(now.items, c)
	}
	if x.drop(4); len(now.items) > 0 {
		x.set(4, now)
	}
}

// chunk copies the pages of a column chunk and returns its ColumnChunk without filters and indexes.
func (j *Job) chunk(ctx context.Context, out *counted, s *source, g, leaf int, c node) (node, error) {
	at := s.r.ChunkSpan(g, leaf)
	made := madeChunk{leaf: slices.Index(s.leaves, leaf), at: out.off, size: at.Len}
	moved := out.off - s.r.ChunkStart(g, leaf)
	var err error
	if made.sum, err = copySpan(ctx, out, s.r.File, at, 0); err != nil {
		return c, err
	}
	j.made = append(j.made, made)
	m := *c.at(3)
	m.fields = slices.Clone(m.fields)
	for _, id := range []int16{9, 10, 11} { // the offsets of data, index and dictionary pages
		if p := m.at(id); p != nil && p.n > 0 {
			m.set(id, i64(p.n+moved))
		}
	}
	return s.place(out, c, m)
}

// place completes a ColumnChunk whose pages have been written, except for filters and indexes.
func (s *source) place(out *counted, c, m node) (node, error) {
	m.drop(14, 15)
	c.fields = slices.Clone(c.fields)
	c.drop(4, 5, 6, 7)
	c.set(2, i64(0))
	if strings.HasPrefix(s.r.Footer.CreatedBy, "stoa version") { // recovery finds the ends of chunks by these copies
		c.set(2, i64(out.off))
		if _, err := out.Write(m.append(nil)); err != nil {
			return c, err
		}
	}
	c.set(3, m)
	return c, nil
}

// addTrailers adds functions that copy the Bloom filter, the column index and the offset index of a chunk, or of a part
// of it whose first row is row. A part keeps the chunk's filter, which remains correct though it may contain more
// values.
func (s *source) addTrailers(ctx context.Context, g, leaf int, cut *chunkPart, row int64, c *node, l *trailers) {
	r, was := s.r, s.r.Footer.RowGroups[g].Columns[leaf]
	if was.MetaData.BloomFilterOffset != nil {
		l.add(0, func(out *counted) error {
			b, err := r.Bloom(ctx, was)
			if err != nil || !b.Valid(r.File) {
				return err
			}
			at := out.off
			if _, err := copySpan(ctx, out, r.File, b.Header, 0); err != nil {
				return err
			}
			if _, err := copySpan(ctx, out, r.File, b.Bits, 0); err != nil {
				return err
			}
			m := *c.at(3)
			m.set(14, i64(at))
			if was.MetaData.BloomFilterLength != nil {
				m.set(15, i32(out.off-at))
			}
			c.set(3, m)
			return nil
		})
	}
	if off, n := was.ColumnIndexOffset, was.ColumnIndexLength; off != nil && n != nil {
		l.add(1, func(out *counted) error {
			c.set(6, i64(out.off))
			if cut != nil {
				length, err := s.indexPart(ctx, out, r.Span(*off, int64(*n)), leaf, cut)
				c.set(7, i32(length))
				return err
			}
			c.set(7, i32(int64(*n)))
			_, err := copySpan(ctx, out, r.File, r.Span(*off, int64(*n)), 0)
			return err
		})
	}
	if off, n := was.OffsetIndexOffset, was.OffsetIndexLength; off != nil && n != nil {
		l.add(2, func(out *counted) error { return s.offsetIndex(ctx, out, g, leaf, cut, row, c) })
	}
}

// index reads an index in its stored form.
func (s *source) index(ctx context.Context, at fault.Span, path string) (node, error) {
	b := make([]byte, at.Len)
	if err := format.ReadFull(ctx, s.r.Src, at, path, b); err != nil {
		return node{}, err
	}
	x, _, err := decode(b)
	return x, err
}

// offsetIndex writes an offset index with the new positions of the pages and with their rows, which start at row.
func (s *source) offsetIndex(ctx context.Context, out *counted, g, leaf int, cut *chunkPart, row int64, c *node) error {
	was := s.r.Footer.RowGroups[g].Columns[leaf]
	x, err := s.index(ctx, s.r.Span(*was.OffsetIndexOffset, int64(*was.OffsetIndexLength)), "offset_index")
	if err != nil {
		return err
	}
	if cut != nil {
		cut.narrow(&x)
		cut.relocate(&x, row)
	} else if pages := x.at(1); pages != nil {
		moved := chunkStart(c.at(3)) - s.r.ChunkStart(g, leaf)
		for i := range pages.items {
			if p := pages.items[i].at(1); p != nil {
				p.n += moved
			}
		}
	}
	b := x.append(nil)
	c.set(4, i64(out.off))
	c.set(5, i32(int64(len(b))))
	_, err = out.Write(b)
	return err
}

// chunkStart returns the offset of the first page of a chunk, like File.ChunkStart.
func chunkStart(m *node) int64 {
	data, dict := m.at(9).n, int64(0)
	if d := m.at(11); d != nil {
		dict = d.n
	}
	if dict <= 0 {
		return data
	}
	if data == 0 {
		return dict
	}
	return min(data, dict)
}

// Check reads a file that Write wrote, and compares its pages byte by byte with the ones that were copied.
func (j *Job) Check(ctx context.Context, tree store.Tree, name string) error {
	f, err := file.OpenConsistent(ctx, format.Target{Tree: tree, Name: name}, format.OpenOptions{})
	if err != nil {
		return err
	}
	defer f.Close()
	if f.Footer.NumRows != j.rows {
		return fmt.Errorf("it has %s instead of %d", fault.Count(f.Footer.NumRows, "row"), j.rows)
	}
	for _, m := range j.made {
		if m.group >= len(f.Footer.RowGroups) {
			return fmt.Errorf("it has %s only", fault.Count(len(f.Footer.RowGroups), "row group"))
		}
		at := f.ChunkSpan(m.group, m.leaf)
		if m.size > 0 && at.Off != m.at || at.Len != m.size {
			return fault.Corruptf(at, meta.IndexPath(m.group, m.leaf, ""), "the pages lie elsewhere than they were "+
				"written")
		}
		sum, err := copySpan(ctx, &counted{w: io.Discard}, f, at, 0)
		if err != nil {
			return err
		}
		if sum != m.sum {
			return fault.Corruptf(at, meta.IndexPath(m.group, m.leaf, ""), "the pages are not those that were copied")
		}
	}
	return nil
}

// Rows returns the total number of rows.
func (j *Job) Rows() int64 { return j.rows }

// Cut returns the number of pages that are decoded and encoded because they have rows of two row groups.
func (j *Job) Cut() int64 { return j.cutPages }
