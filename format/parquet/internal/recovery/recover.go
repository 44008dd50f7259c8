package recovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/read"
	"stoa/format/parquet/internal/verify"
	"stoa/internal/check"
	"stoa/region"
)

// File opens what is left of a file. If the footer can be read, that is an ordinary open. Otherwise
//
//  1. a footer is searched for backwards: the end of the file may be cut, or bytes may follow the footer;
//  2. else the beginning of one, up to the end of the file: the schema comes first, then the number of rows,
//     then the row groups, of which the complete ones are taken;
//  3. else the schema is taken from another file, which option schema names;
//  4. pages are walked from the end of the known row groups, and made into row groups (see groups.go).
func File(ctx context.Context, t format.Target, o format.OpenOptions) (*read.Reader, []region.Finding, error) {
	r, err := file.New(ctx, t, o)
	if err != nil {
		return nil, nil, err
	}
	s := &recoverer{ctx: ctx, r: r}
	s.Reporter = verify.Collect(t.Name, &s.findings).Reporter
	if err = r.Start(ctx); err == nil {
		if err := r.CheckRows(); err != nil { // each row group's own count is trusted
			s.Blame("parquet.rows", err, -1, -1)
			r.Footer.NumRows = 0
			for _, g := range r.Footer.RowGroups {
				r.Footer.NumRows += g.NumRows
			}
		}
		out := read.NewReader(r, nil)
		if _, err = s.findMoved(o, out); err != nil {
			r.Src.Close()
			return nil, s.findings, err
		}
		return out, s.findings, nil
	}
	if errors.Is(err, fault.Corrupt) {
		s.Blame("parquet.footer", err, -1, -1)
		if out, err := s.shortened(o); out != nil || err != nil {
			return out, s.findings, err
		}
		if err = s.run(o, err); err == nil {
			s.countByColumns()
		}
	}
	if err == nil {
		r.MissingParts = r.MissingSiblings(ctx)
	}
	if err != nil {
		r.Src.Close()
		return nil, s.findings, err
	}
	return read.NewReader(r, s.lost), s.findings, nil
}

// shortened opens a file from which so much was removed that the footer has chunks behind its end; nil if it is none.
func (s *recoverer) shortened(o format.OpenOptions) (*read.Reader, error) {
	r := s.r
	r.Short = true
	if r.Start(s.ctx) == nil && r.CheckRows() == nil {
		out := read.NewReader(r, nil)
		found, err := s.findMoved(o, out)
		if found && err == nil {
			return out, nil
		}
		if err != nil {
			r.Src.Close()
			return nil, err
		}
	}
	r.Short = false
	return nil, nil
}

// recoverer recovers the remainder of a file without a footer.
type recoverer struct {
	*check.Reporter
	ctx      context.Context
	r        *file.File
	findings []region.Finding
	lost     map[file.ChunkKey]error
	looked   int64 // bytes read so far of candidate footers
}

// run makes s.r a reader of the remainder. cause is the error that kept the file from being opened.
func (s *recoverer) run(o format.OpenOptions, cause error) error {
	s.r.Tracer = nil
	left, err := s.footer()
	if err != nil {
		return err
	}
	if left != nil && left.whole {
		end := left.at + int64(left.end)
		s.Rows("parquet.recovered", s.r.Span(left.at, int64(left.end)), [2]int64{0, left.rows}, 0,
			"a footer was found that ends %d bytes before the end", s.r.Size-end)
		return nil
	}
	var pairs []meta.KeyValue
	switch name := o.Opts["schema"]; {
	case left != nil:
		if pairs, err = s.sameColumns(o, name, left); err != nil {
			return err
		}
		what := "Arrow's own schema, which comes after them, is not"
		switch {
		case pairs != nil:
			what += ": that of " + name + " is used"
		case name != "":
			what += ", and " + name + " has different columns: it is not used"
		}
		s.Rows("parquet.footer.cut", s.r.Span(left.at, s.r.Size-left.at), [2]int64{-1, -1}, 0,
			"the footer is truncated: the schema is there, and %d complete row groups; %s", len(left.groups), what)
	case name != "":
		if left, pairs, err = s.schemaOf(o, name); err != nil {
			return err
		}
	default:
		return fault.Corruptf(errorSpan(cause), "footer", "it is lost, and with it the names and types of the "+
			"columns: option schema=FILE takes them from an intact Parquet file with the same columns by the same "+
			"writer")
	}
	return s.rebuild(left, pairs)
}

// countByColumns corrects the number of rows of a row group if a damaged footer states one that none of its columns
// has. It uses the columns with one value per row, if these agree.
func (s *recoverer) countByColumns() {
	for g, group := range s.r.Footer.RowGroups {
		rows, agree := int64(-1), true
		for i := range group.Columns {
			key := file.ChunkKey{Group: g, Leaf: i}
			if s.r.Footer.Schema.Column(i).MaxRepetitionLevel() > 0 || s.lost[key] != nil || s.r.Claimed[key] != nil {
				continue
			}
			n := group.Columns[i].MetaData.NumValues
			agree = agree && (rows < 0 || n == rows)
			rows = n
		}
		if agree && rows >= 0 && rows != group.NumRows {
			s.Blame("parquet.rows", fault.Corruptf(s.r.FooterAt, fmt.Sprintf("row_groups[%d].num_rows", g),
				"%d, and its columns have %d", group.NumRows, rows), -1, -1)
			s.r.Footer.NumRows += rows - group.NumRows
			group.NumRows = rows
		}
	}
}

func errorSpan(err error) fault.Span {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.At
	}
	return fault.Span{}
}

// sameColumns returns the key/value metadata of another file, including its Arrow schema, if that file's columns match
// the remaining footer; else nil.
func (s *recoverer) sameColumns(o format.OpenOptions, name string, left *footerLeft) ([]meta.KeyValue, error) {
	if name == "" {
		return nil, nil
	}
	other, pairs, err := s.schemaOf(o, name)
	if err != nil || !bytes.Equal(other.b[:other.prefix], left.b[:left.prefix]) {
		return nil, err
	}
	return pairs, nil
}

// schemaOf reads the schema of another file.
func (s *recoverer) schemaOf(o format.OpenOptions, name string) (*footerLeft, []meta.KeyValue, error) {
	o.Opts, o.Tracer = nil, nil
	other, err := file.Open(s.ctx, format.Target{Tree: s.r.Target.Tree, Name: name}, o)
	if err != nil {
		return nil, nil, fault.Invalidf("schema=%s: not an intact Parquet file: %v", name, err)
	}
	defer other.Close()
	b := make([]byte, other.FooterAt.Len)
	if err := format.ReadFull(s.ctx, other.Src, other.FooterAt, "footer", b); err != nil {
		return nil, nil, err
	}
	left := footerParts(b)
	left.b, left.groups, left.rows, left.at = b, nil, -1, s.r.Size
	return &left, other.Footer.KeyValues, nil
}

// rebuild makes a footer from the known row groups and those found by their pages.
func (s *recoverer) rebuild(left *footerLeft, pairs []meta.KeyValue) error {
	known := left.synthesize(nil)
	if err := s.r.SetFooter(known, pairs); err != nil {
		return err
	}
	from := int64(len(meta.Magic))
	for g := range s.r.Footer.RowGroups {
		for c := range s.r.Footer.RowGroups[g].Columns {
			from = max(from, s.r.ChunkSpan(g, c).End()-s.r.Base)
		}
	}
	rows := left.rows
	for _, g := range s.r.Footer.RowGroups {
		rows -= g.NumRows
	}
	if left.rows < 0 {
		rows = -1
	}
	w := &pageWalk{s: s, lost: map[file.ChunkKey]error{}, group: len(left.groups)}
	if rows != 0 {
		if err := w.walk(from, left.at); err != nil {
			return err
		}
	}
	if err := w.divide(rows); err != nil {
		return err
	}
	if err := s.r.SetFooter(left.synthesize(w.groups), pairs); err != nil {
		return err
	}
	s.lost = w.lost
	n := s.r.Footer.NumRows
	s.Rows("parquet.recovered", s.r.Span(0, s.r.Size), [2]int64{0, n}, 0, "%s with %d rows were found",
		fault.Count(len(s.r.Footer.RowGroups), "row group"), n)
	return nil
}

// footer searches for the last footer in the file, or for the beginning of one that extends to the end of the file; nil
// if there is none.
func (s *recoverer) footer() (*footerLeft, error) {
	const step = 1 << 20
	for end := s.r.Size; end > int64(len(meta.Magic)); end -= step {
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
		from := max(int64(len(meta.Magic)), end-step)
		b := make([]byte, min(s.r.Size, end+3)-from)
		if err := format.ReadFull(s.ctx, s.r.Src, s.r.Span(from, int64(len(b))), "footer", b); err != nil {
			return nil, err
		}
		for i := len(b); ; {
			// A footer begins with field 1, the version (an i32), and field 2, the schema (a list).
			if i = bytes.LastIndexByte(b[:i], i32Field); i < 0 {
				break
			}
			if i+2 >= len(b) || b[i+1] == 0 || b[i+1] > 8 || b[i+1]&1 != 0 || b[i+2] != listField {
				continue
			}
			left, err := s.footerAt(from + int64(i))
			if left != nil || err != nil {
				return left, err
			}
		}
	}
	return nil, nil
}

// i32Field begins an i32 field whose number is one greater than that of the preceding field.
const i32Field = 0x15

// listField begins a list field whose number is one greater than that of the preceding field.
const listField = 0x19

// footerAt reads a footer at pos that is complete or extends to the end of the file; nil if there is none.
func (s *recoverer) footerAt(pos int64) (*footerLeft, error) {
	for n := int64(4 << 10); ; n *= 8 {
		n = min(n, s.r.Size-pos, s.r.Limits.Metadata)
		if s.looked += n; s.looked > 8*s.r.Size+1<<20 {
			return nil, nil
		}
		b := make([]byte, n)
		if err := format.ReadFull(s.ctx, s.r.Src, s.r.Span(pos, n), "footer", b); err != nil {
			return nil, err
		}
		left := footerParts(b)
		switch {
		case left.wrong || left.prefix == 0 && left.whole:
			return nil, nil
		case !left.whole && n < min(s.r.Size-pos, s.r.Limits.Metadata):
			continue // the footer may just be longer
		case left.prefix == 0:
			return nil, nil
		}
		left.b, left.at = b, pos
		if !s.holds(&left) {
			return nil, nil
		}
		return &left, nil
	}
}

// maxTried is the number of chunks that are walked page by page to recognize a footer.
const maxTried = 64

// holds reports whether a footer belongs to this file, and sets it. The check is needed because a page of one Parquet
// file may contain another Parquet file. So the pages of the first chunks and of the last row group must all be there,
// with all their values, and no page after the chunks may reach into the footer.
func (s *recoverer) holds(left *footerLeft) bool {
	b := left.b[:left.end]
	if !left.whole {
		b = left.synthesize(nil)
	}
	if err := s.r.SetFooter(b, nil); err != nil {
		return false
	}
	r := s.r
	r.FooterAt = r.Span(left.at, int64(left.end))
	groups := r.Footer.RowGroups
	end, tries := int64(len(meta.Magic)), 0
	for g := range groups {
		for c := range groups[g].Columns {
			at := r.ChunkSpan(g, c)
			if at.End() > r.FooterAt.Off {
				return false
			}
			end = max(end, at.End()-r.Base)
			if tries++; (tries <= maxTried || g == len(groups)-1) && !s.tiled(g, c) {
				return false
			}
		}
	}
	if left.whole && len(groups) == 0 {
		return left.at == end
	}
	w := pageWalk{s: s}
	return w.walk(end, left.at) == nil && !w.cut
}

// tiled reports whether a chunk consists of pages to its last byte and these have the chunk's number of values.
func (s *recoverer) tiled(group, leaf int) bool {
	values := int64(0)
	for p, err := range s.r.Pages(s.ctx, group, leaf) {
		if err != nil || !p.Plausible() && p.Kind != meta.IndexPage {
			return false
		}
		if p.IsData() {
			values += p.Values
		}
	}
	return values == s.r.Footer.RowGroups[group].Columns[leaf].MetaData.NumValues
}
