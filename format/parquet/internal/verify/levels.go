package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/read"
	"stoa/vec"
)

// The quantities that size statistics count.
const (
	repLevels = iota
	defLevels
	textBytes
	tallied
)

// tally counts entries by repetition and definition level, and the bytes of strings without their lengths.
type tally [tallied][]int64

// levelClaim is the size statistics of a column chunk or a page.
type levelClaim struct {
	path string
	at   fault.Span
	kind int
	said []int64
}

// levelClaims are the claims about a column chunk and each of its data pages.
type levelClaims struct {
	chunk []levelClaim
	pages [][]levelClaim
	any   bool
}

// levels counts the levels of a column chunk and the bytes of its strings, and compares the counts with the footer,
// both indexes and the page headers.
func (v *verifier) levels(w *chunkWalk) {
	reported := slices.ContainsFunc(w.data, func(p meta.Page) bool { return v.badPages[p.Body] })
	if w.damaged || reported || v.Stopped() {
		return
	}
	said := v.levelClaims(w)
	rows := w.pageRows()
	nulls := slices.ContainsFunc(w.data, func(p meta.Page) bool { return p.Nulls >= 0 })
	if !said.any && !nulls && (w.flat || rows == nil) {
		return
	}
	d := v.r.Footer.Schema.Column(w.leaf)
	empty := func() tally {
		return tally{make([]int64, d.MaxRepetitionLevel()+1), make([]int64, d.MaxDefinitionLevel()+1), make([]int64, 1)}
	}
	all, page, k, seen := empty(), empty(), 0, int64(0)
	next := func() { // after page k has been counted
		v.checkLevels(said.pages[k], page)
		if !w.flat && rows != nil {
			v.checkRows(w, k, rows[k], page[repLevels][0])
		}
		v.checkNulls(w, k, page[defLevels][d.MaxDefinitionLevel()])
		for kind := range page {
			for i, n := range page[kind] {
				all[kind][i] += n
			}
		}
		page, k, seen = empty(), k+1, 0
	}
	for _, page = range w.counted {
		next()
	}
	if w.counted != nil {
		v.checkLevels(said.chunk, all)
		return
	}
	err := entries(v.r, v.ctx, w.group, w.leaf, func(rep, def byte, size int64) {
		for k < len(w.data)-1 && seen == w.data[k].Values {
			next()
		}
		page[repLevels][rep]++
		page[defLevels][def]++
		page[textBytes][0] += size
		seen++
	})
	if err != nil {
		v.findUnlessDamage("parquet.levels", err)
		return
	}
	for k < len(w.data) && seen == w.data[k].Values {
		next()
	}
	if k == len(w.data) {
		v.checkLevels(said.chunk, all)
	}
}

// levelClaims collects the claims. Histograms of the wrong length are reported at once.
func (v *verifier) levelClaims(w *chunkWalk) (out levelClaims) {
	d, n := v.r.Footer.Schema.Column(w.leaf), len(w.data)
	out.pages = make([][]levelClaim, n)
	m := v.r.Footer.RowGroups[w.group].Columns[w.leaf].MetaData
	// Of strings in DELTA_BYTE_ARRAY, Arrow C++ counts only the bytes that they do not share with the previous string.
	noBytes := d.PhysicalType() != meta.TypeBytes ||
		slices.ContainsFunc(m.Encodings, func(e meta.Encoding) bool { return e == meta.DeltaByteArray }) &&
			strings.HasPrefix(v.r.Footer.CreatedBy, "parquet-cpp")
	each := [tallied]int{int(d.MaxRepetitionLevel()) + 1, int(d.MaxDefinitionLevel()) + 1, 1}
	says := func(name string, at fault.Span, kind int, said []int64, pages bool) {
		path, want := meta.IndexPath(w.group, w.leaf, name), each[kind]
		if pages {
			want *= n
		}
		switch {
		case len(said) == 0, kind == textBytes && noBytes:
			return
		case len(said) != want:
			v.find("parquet.levels", fault.Corruptf(at, path, "%d numbers instead of %d", len(said), want))
			return
		}
		out.any = true
		if !pages {
			out.chunk = append(out.chunk, levelClaim{path, at, kind, said})
			return
		}
		for k := range n {
			out.pages[k] = append(out.pages[k],
				levelClaim{fmt.Sprintf("%s[%d]", path, k), at, kind, said[k*each[kind] : (k+1)*each[kind]]})
		}
	}
	if s := m.SizeStatistics; s != nil {
		says("size_statistics.repetition_level_histogram", v.r.FooterAt, repLevels, s.RepetitionLevelHistogram, false)
		says("size_statistics.definition_level_histogram", v.r.FooterAt, defLevels, s.DefinitionLevelHistogram, false)
		if b := s.UnencodedByteArrayDataBytes; b != nil {
			says("size_statistics.unencoded_byte_array_data_bytes", v.r.FooterAt, textBytes, []int64{*b}, false)
		}
	}
	if w.x != nil {
		says("offset_index.unencoded_byte_array_data_bytes", w.x.At, textBytes, w.x.Bytes, true)
	}
	c, err := v.r.ColumnIndex(v.ctx, w.group, w.leaf, n)
	if v.findUnlessDamage("parquet.index", err); err == nil && c != nil {
		says("column_index.repetition_level_histograms", c.At, repLevels, c.RepLevels, true)
		says("column_index.definition_level_histograms", c.At, defLevels, c.DefLevels, true)
	}
	return out
}

// checkRows compares the number of rows that a data page of a list's leaf should have, according to the offset index or
// its header, with the number that begin in it.
func (v *verifier) checkRows(w *chunkWalk, k int, said vec.Range, begin int64) {
	switch p := &w.data[k]; {
	case said.Len() == begin:
	case w.x != nil:
		v.find("parquet.index", fault.Corruptf(w.x.At,
			meta.IndexPath(w.group, w.leaf, fmt.Sprintf("offset_index.page_locations[%d].first_row_index", k)),
			"rows %d to %d of the row group, but %d rows begin in the page", said.From, said.To, begin))
	default:
		v.find("parquet.values", fault.Corruptf(p.Header,
			meta.IndexPath(w.group, w.leaf, fmt.Sprintf("page[%d].header.num_rows", k)),
			"%d, but %d rows begin in the page", p.Rows, begin))
	}
}

// checkNulls compares the number of nulls in the header of a data page v2 with its entries; values is the number of
// entries that are not null. Arrow's writers count nulls only for statistics, and write 0 if no statistics are written.
func (v *verifier) checkNulls(w *chunkWalk, k int, values int64) {
	p, counted := &w.data[k], groupStats(v.r, w.group, w.leaf) != nil
	if p.Nulls < 0 || p.Nulls == p.Values-values || p.Nulls == 0 && p.Stats == nil && !counted {
		return
	}
	v.find("parquet.index.bounds", fault.Corruptf(p.Header,
		meta.IndexPath(w.group, w.leaf, fmt.Sprintf("page[%d].header.num_nulls", k)), "%d, there are %d", p.Nulls,
		p.Values-values))
}

func (v *verifier) checkLevels(said []levelClaim, is tally) {
	for _, c := range said {
		if !slices.Equal(c.said, is[c.kind]) {
			v.find("parquet.levels", fault.Corruptf(c.at, c.path, "%v, there are %v", c.said, is[c.kind]))
		}
	}
}

// entries calls f with the levels of every entry of a column chunk, and with its size if it is a string.
func entries(r *read.Reader, ctx context.Context, group, leaf int, f func(rep, def byte, size int64)) error {
	text := r.Leaves[leaf].Typ == meta.TypeBytes
	return r.EachStored(ctx, group, leaf, func(v *vec.Vector) error {
		def, rep := v.Def(), v.Rep()
		for i := range def {
			n := int64(0)
			if text {
				o := v.Offsets(i)
				n = int64(o[1] - o[0])
			}
			f(rep[i], def[i], n)
		}
		return nil
	})
}
