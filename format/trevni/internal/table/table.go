package table

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/container"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/page"
	"stoa/format/trevni/internal/schema"
	"stoa/region"
	"stoa/vec"
)

// Table is a Trevni file as rows. It is a format.Reader.
type Table struct {
	name           string
	stamp          string
	File           *container.File
	Plan           *schema.Plan
	Shown          *arrow.Schema
	cols           []format.Column
	order          []format.Key
	sorted         []int // stored columns whose values ascend
	Contradictions []region.Finding
	PartFindings   []region.Finding // about the other files of the table
	Cut            []region.Finding // columns that begin or end after the end of the file
	Sampled        string           // note that the schema was inferred from some of the entries only; or ""
}

// New returns the Table of an open file. A schema that cannot be represented is an error of class Unsupported.
func New(ctx context.Context, tg format.Target, f *container.File, o readOptions) (*Table, error) {
	if err := schema.CheckLimits(f); err != nil {
		return nil, err
	}
	t := &Table{name: tg.Name, File: f}
	if err := t.plan(ctx, tg.Tree, o); err != nil {
		return nil, err
	}
	if t.Plan == nil {
		return nil, fault.Unsupportedf(f.At.Sub(0, f.Header.Size), "column-metadata",
			"columns are nested deeper than stoa can show")
	}
	t.Shown = arrow.NewSchema(t.Plan.Fields, nil)
	if err := f.Limits.Fit(t.Shown, f.At.Sub(0, f.Header.Size), "column-metadata"); err != nil {
		return nil, err
	}
	t.Contradictions = t.contradictions()
	t.checkSiblings(ctx, tg)
	for _, ph := range t.Plan.Phys {
		t.cols = append(t.cols, ph.Column)
	}
	if tg.Tree != nil {
		if info, err := tg.Tree.Stat(ctx, tg.Name); err == nil {
			t.stamp = info.Stamp
		}
	}
	return t, t.findSorted(o)
}

func (t *Table) Schema() *arrow.Schema    { return t.Shown }
func (t *Table) Columns() []format.Column { return t.cols }
func (t *Table) Order() []format.Key      { return t.order }
func (t *Table) Close() error             { return t.File.Src.Close() }

func (t *Table) Parts(context.Context, format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		yield(format.Part{Ref: t.name, Stamp: t.stamp, Rows: t.File.Header.Rows, Bytes: t.File.At.Len}, nil)
	}
}

func (t *Table) RowGroups(_ context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	if q.Strict { // one of two names, schemas or files is wrong: no row is certain to belong to the table
		for _, x := range slices.Concat(t.Contradictions, t.PartFindings) {
			if x.Severity >= region.Error && x.Code != "trevni.part.missing" {
				return nil, fault.Corruptf(x.At, x.Path, "%s (%s)", x.Message, x.Code)
			}
		}
	}
	return []format.RowGroup{{Part: p.Ref, Rows: t.File.Header.Rows, Bytes: t.stored(q.Cols)}}, nil
}

// stored returns the size of the columns: of each, the distance to where the next one in the file begins. Without
// columns it is that of the file. No descriptors of blocks are read.
func (t *Table) stored(cols []int) (sum int64) {
	if len(cols) == 0 {
		return t.File.At.Len
	}
	starts := make([]int64, 0, len(t.File.Header.Columns)+1)
	for i := range t.File.Header.Columns {
		starts = append(starts, t.File.Header.Columns[i].Start)
	}
	starts = append(starts, t.File.At.Len)
	slices.Sort(starts)
	seen := map[int]bool{}
	for _, c := range cols {
		col := t.Plan.Phys[c].Stored
		if seen[col] {
			continue
		}
		seen[col] = true
		start := t.File.Header.Columns[col].Start
		if i, _ := slices.BinarySearch(starts, start+1); i < len(starts) {
			sum += starts[i] - start
		}
	}
	return min(sum, t.File.At.Len) // starts that damage made up are no sizes
}

func (t *Table) Chunk(ctx context.Context, _ format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	if col < 0 || col >= len(t.Plan.Phys) {
		return nil, fault.Invalidf("there is no column %d", col)
	}
	return page.NewChunk(ctx, t.File, t.Plan.Phys[col], rows)
}

// Findings returns contradictions within the file, missing or wrong parts of the table, and whether the file is cut.
func (t *Table) Findings() []region.Finding {
	return slices.Concat(t.Contradictions, t.PartFindings, t.Cut)
}

// Meta returns facts about the file, followed by its own metadata.
func (t *Table) Meta() []format.KeyValue {
	var out []format.KeyValue
	add := func(k, v string) { out = append(out, format.KeyValue{Key: k, Value: v}) }
	h := &t.File.Header
	add("format", fmt.Sprintf("Trevni, dialect %s, version %d", h.Dialect, h.Version))
	add("rows", strconv.FormatInt(h.Rows, 10))
	add("columns", strconv.Itoa(len(h.Columns)))
	add("schema", t.Plan.How)
	if t.Plan.Mismatch != "" {
		add("schema.odd", t.Plan.Mismatch)
	}
	for _, m := range h.Meta {
		add(metaKey(m.Key), metaValue(m))
	}
	for i := range h.Columns {
		for _, m := range h.Columns[i].Meta {
			add(fmt.Sprintf("column[%d].%s", i, m.Key), metaValue(m))
		}
	}
	return out
}

// metaKey returns a key for display; the empty key is allowed.
func metaKey(k string) string {
	if k == "" {
		return `""`
	}
	return k
}

func metaValue(m layout.Pair) string {
	for _, b := range m.Value {
		if b < ' ' || b == 0x7f {
			return fmt.Sprintf("0x%x", m.Value)
		}
	}
	if page.InvalidUTF8(m.Value, []int32{0, int32(len(m.Value))}) >= 0 {
		return fmt.Sprintf("0x%x", m.Value)
	}
	return string(m.Value)
}
