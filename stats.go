package stoa

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/address"
	"stoa/internal/extremes"
	"stoa/internal/scan"
	"stoa/region"
)

// ColumnStats are the statistics of one physical column. Numbers that are not known are -1.
type ColumnStats struct {
	Name     string
	Type     arrow.DataType
	Encoding string // all of them if there are several
	Codec    string
	Blocks   int64  // pages, not counting the dictionary
	Rows     int64  //
	Nulls    int64  //
	Raw      int64  // bytes of the blocks after decompression; with Stored's headers, if the format knows them
	Stored   int64  // bytes of the blocks as stored, including the dictionary and page headers
	Dict     int64  // entries of the dictionary
	DictSize int64  // bytes of the dictionary as stored
	Bloom    int64  // bytes of Bloom filters; -1 also if the format has none
	Min, Max string // as text; "" = not known

	// Encodings counts the blocks by encoding; nil: not known.
	Encodings []format.EncodedPages

	lo, hi  extremes.Value
	counted map[fault.Span]bool // bytes of the row group that other columns counted, too; nil: none are shared
}

// Stats reads every page and returns statistics of the columns. Under a policy other than Fail it counts what can be
// read, and calls lost for the rest.
func (t *Table) Stats(ctx context.Context, damaged Damaged, lost func(region.Loss)) ([]ColumnStats, error) {
	var out []ColumnStats
	lost = address.Losses(lost)
	for _, s := range t.sources {
		var some []ColumnStats
		var err error
		_, batched := s.reader.(format.Batcher)
		_, changed := s.reader.(format.Overlayer)
		switch {
		case batched:
			some, err = batchStats(ctx, s, damaged, lost)
		case changed:
			some, err = changedStats(ctx, s, damaged, lost)
		default:
			if some, err = pageStats(ctx, s, damaged, lost); err == nil {
				err = s.checkUnchanged(ctx)
			}
		}
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = some
			continue
		}
		for i := range some {
			out[i].add(some[i])
		}
	}
	return out, nil
}

// SumStats adds up the pages, entries, nulls and bytes of columns; a sum is -1 if any of its terms is not known.
func SumStats(all []ColumnStats) (sum ColumnStats) {
	for i, c := range all {
		c.Type, c.Name, c.lo, c.hi, c.Min, c.Max = nil, "", extremes.Value{}, extremes.Value{}, "", ""
		if c.Encodings = slices.Clone(c.Encodings); i == 0 {
			sum = c
			continue
		}
		sum.add(c)
	}
	return sum
}

func (c *ColumnStats) add(o ColumnStats) {
	for _, p := range [][2]*int64{{&c.Blocks, &o.Blocks}, {&c.Rows, &o.Rows}, {&c.Nulls, &o.Nulls},
		{&c.Raw, &o.Raw}, {&c.Stored, &o.Stored}, {&c.Dict, &o.Dict}, {&c.DictSize, &o.DictSize},
		{&c.Bloom, &o.Bloom}} {
		if *p[0] < 0 || *p[1] < 0 {
			*p[0] = -1
		} else {
			*p[0] += *p[1]
		}
	}
	c.Codec, c.Encoding = joined(c.Codec, o.Codec), joined(c.Encoding, o.Encoding)
	c.encoded(o.Encodings)
	c.lo.Lower(o.lo)
	c.hi.Higher(o.hi)
	c.Min, c.Max = c.lo.Text, c.hi.Text
}

// joined appends to a list, separated by commas, the names of another that it lacks.
func joined(have, more string) string {
	if have == "" {
		return more
	}
	for _, name := range strings.Split(more, ",") {
		if name != "" && !slices.Contains(strings.Split(have, ","), name) {
			have += "," + name
		}
	}
	return have
}

// encoded adds blocks to the counts of their encodings.
func (c *ColumnStats) encoded(more []format.EncodedPages) {
	for _, m := range more {
		i := slices.IndexFunc(c.Encodings, func(e format.EncodedPages) bool { return e.Encoding == m.Encoding })
		if i < 0 {
			c.Encodings = append(c.Encodings, m)
		} else {
			c.Encodings[i].Pages += m.Pages
		}
	}
}

// chunk adds the reader's facts about a chunk.
func (c *ColumnStats) chunk(f format.ChunkFacts) {
	c.Codec, c.Bloom = joined(c.Codec, f.Codec), max(c.Bloom, 0)+f.Bloom
	for _, e := range f.Encodings {
		c.Encoding = joined(c.Encoding, e.Encoding)
	}
	c.encoded(f.Encodings)
}

func pageStats(ctx context.Context, s *source, damaged Damaged, lost func(region.Loss)) ([]ColumnStats, error) {
	cols := s.reader.Columns()
	physical, knows := s.reader.(format.Physical)
	out := make([]ColumnStats, len(cols))
	for i, c := range cols {
		out[i] = ColumnStats{Name: c.Name, Type: c.Type, Encoding: c.Facts.Encoding, Codec: c.Facts.Codec, Bloom: -1}
		if knows {
			out[i].Encoding, out[i].Codec = "", "" // filled in from all chunks, not only the first
		}
	}
	for g, err := range scan.Groups(ctx, s.reader) {
		if err != nil {
			return nil, err
		}
		counted := map[fault.Span]bool{}
		for i := range cols {
			report := func(l region.Loss) error {
				if damaged == Fail {
					return l.Err
				}
				if l.Column = s.reader.Schema().Field(cols[i].Path[0]).Name; l.Column != cols[i].Name {
					l.Stored = cols[i].Name
				}
				if lost != nil {
					lost(l)
				}
				return nil
			}
			if knows {
				err = out[i].physical(ctx, s, physical, g, i, report)
			} else {
				if out[i].counted = nil; inOne(cols, i) {
					out[i].counted = counted
				}
				err = chunkStats(ctx, s, g, i, &out[i], report)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// physical adds a chunk about which the reader knows more than its pages show: the bytes of a whole chunk include
// headers, and a dictionary that no page needs. Of a damaged chunk, only the readable part counts.
func (c *ColumnStats) physical(ctx context.Context, s *source, r format.Physical, g format.RowGroup, col int,
	report func(region.Loss) error) error {
	whole, stored, raw, blocks := true, c.Stored, c.Raw, c.Blocks
	err := chunkStats(ctx, s, g, col, c, func(l region.Loss) error {
		whole = false
		return report(l)
	})
	if err != nil {
		return err
	}
	f, err := r.ChunkFacts(ctx, g, col)
	if err != nil && !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported) {
		return err
	} // damage was reported with the pages
	if whole && err == nil && f.Stored >= 0 {
		c.Stored, c.Raw = stored+f.Stored, raw+f.Raw
	}
	if len(f.Encodings) == 1 && f.Encodings[0].Pages < 0 {
		f.Encodings[0].Pages = c.Blocks - blocks
	}
	c.chunk(f)
	return nil
}

// inOne reports whether a column shares its storage with its parent, which counts its entries, or with a child.
func inOne(cols []format.Column, i int) bool {
	return slices.ContainsFunc(cols, func(c format.Column) bool {
		return c.Parent >= 0 && cols[c.Parent].Name == c.Name && c.Name == cols[i].Name
	})
}

// before reports whether a page's bytes were counted already, for another column that is stored in them.
func (c *ColumnStats) before(p format.Page) bool {
	if c.counted == nil || len(p.Spans) == 0 {
		return false
	}
	was := c.counted[p.Spans[0]]
	c.counted[p.Spans[0]] = true
	return was
}

func chunkStats(ctx context.Context, s *source, g format.RowGroup, col int, st *ColumnStats,
	report func(region.Loss) error) error {
	err := scan.Pages(ctx, s.scan, g, col, func(p scan.PageInfo) error {
		if p.Dict {
			st.Dict += int64(p.Vector.Len())
			st.DictSize += p.Stored
			st.Stored += p.Stored
			st.Raw += p.Raw
			return nil
		}
		if len(p.Page.Spans) > 0 && !p.Same && !st.before(p.Page) {
			st.Blocks++
			st.Stored += p.Stored
			st.Raw += p.Raw
		}
		st.Rows += int64(p.Vector.Len())
		st.Nulls += int64(p.Vector.Nulls())
		return extremes.OfVector(p.Vector, &st.lo, &st.hi)
	}, report)
	st.Min, st.Max = st.lo.Text, st.hi.Text
	return err
}

// changedStats returns the statistics of a table with changes stored separately: rows, nulls and bounds are those of
// the current rows, blocks and bytes those of the stored columns. Each page is decoded twice.
func changedStats(ctx context.Context, s *source, damaged Damaged, lost func(region.Loss)) ([]ColumnStats, error) {
	out, err := batchStats(ctx, s, damaged, lost)
	if err != nil {
		return nil, err
	}
	stored, err := pageStats(ctx, s, damaged, nil) // damage was reported with the rows
	if err != nil {
		return nil, err
	}
	for i := range out {
		var of []ColumnStats
		for k, c := range s.reader.Columns() {
			if c.Path[0] == i {
				of = append(of, stored[k])
			}
		}
		h, c := &out[i], SumStats(of)
		h.Encoding, h.Codec, h.Encodings, h.Blocks, h.Raw = c.Encoding, c.Codec, c.Encodings, c.Blocks, c.Raw
		h.Stored, h.Dict, h.DictSize, h.Bloom = c.Stored, c.Dict, c.DictSize, c.Bloom
	}
	return out, s.checkUnchanged(ctx)
}

func batchStats(ctx context.Context, s *source, damaged Damaged, lost func(region.Loss)) ([]ColumnStats, error) {
	var out []ColumnStats
	for _, f := range s.reader.Schema().Fields() {
		out = append(out, ColumnStats{Name: f.Name, Type: f.Type, Blocks: -1, Raw: -1, Stored: -1, DictSize: -1,
			Bloom: -1})
	}
	lo, hi := make([]extremes.Value, len(out)), make([]extremes.Value, len(out))
	t := &Table{schema: s.reader.Schema(), sources: []*source{s}}
	for b, err := range t.Scan(ctx, ScanSpec{Alloc: NewPool(), Damaged: damaged, Lost: lost}) {
		if err != nil {
			return nil, err
		}
		for i, c := range b.Columns() {
			out[i].Rows += int64(c.Len())
			out[i].Nulls += int64(c.NullN())
			extremes.OfArray(c, &lo[i], &hi[i])
		}
	}
	for i := range out {
		out[i].lo, out[i].hi, out[i].Min, out[i].Max = lo[i], hi[i], lo[i].Text, hi[i].Text
	}
	return out, nil
}

// ColumnSize is the size of the pages of a top-level column, with their headers, in bytes.
type ColumnSize struct {
	Name            string
	Encoding, Codec string
	Stored          int64
}

// ColumnSizes returns the stored sizes of the top-level columns, and the total size after decompression. Where the
// format's metadata suffice, no page is read.
func (t *Table) ColumnSizes(ctx context.Context) (out []ColumnSize, raw int64, err error) {
	for _, f := range t.schema.Fields() {
		out = append(out, ColumnSize{Name: f.Name})
	}
	for _, s := range t.sources {
		_, batched := s.reader.(format.Batcher)
		_, changed := s.reader.(format.Overlayer)
		if batched || changed {
			return nil, 0, fault.Unsupportedf(fault.Span{Object: s.name}, "",
				"what each column of %s takes is unknown", s.format.Name)
		}
		stats, err := physicalStats(ctx, s)
		if err != nil {
			return nil, 0, err
		}
		for i, c := range s.reader.Columns() {
			name := s.reader.Schema().Field(c.Path[0]).Name
			k := slices.IndexFunc(out, func(o ColumnSize) bool { return o.Name == name })
			if k < 0 {
				continue
			}
			out[k].Encoding = joined(out[k].Encoding, stats[i].Encoding)
			out[k].Codec = joined(out[k].Codec, stats[i].Codec)
			out[k].Stored += max(0, stats[i].Stored)
			raw += max(0, stats[i].Raw)
		}
	}
	return out, raw, nil
}

// physicalStats returns the sizes and encodings of a source's columns: from metadata, or else by reading its pages.
func physicalStats(ctx context.Context, s *source) ([]ColumnStats, error) {
	physical, ok := s.reader.(format.Physical)
	if !ok {
		return pageStats(ctx, s, Fail, nil)
	}
	out := make([]ColumnStats, len(s.reader.Columns()))
	for g, err := range scan.Groups(ctx, s.reader) {
		for i := 0; i < len(out) && err == nil; i++ {
			var f format.ChunkFacts
			f, err = physical.ChunkFacts(ctx, g, i)
			out[i].chunk(f)
			out[i].Stored, out[i].Raw = out[i].Stored+f.Stored, out[i].Raw+f.Raw
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Dictionaries calls f with the entries of each dictionary of a column that is not nested and can be read, in stored
// order, until it returns false.
func (t *Table) Dictionaries(ctx context.Context, column string, f func(arrow.Array) bool) (err error) {
	for i := 0; i < len(t.sources) && err == nil; i++ {
		err = scan.EachDict(ctx, t.sources[i].scan, column, f)
	}
	return err
}
