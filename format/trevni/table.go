package trevni

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/vec"
)

// table is a file as rows. It is a format.Reader.
type table struct {
	name   string
	stamp  string
	f      *file
	p      *plan
	sc     *arrow.Schema
	cols   []format.Column
	order  []format.Key
	sorted []int // stored columns whose values rise
	odd    []region.Finding
	apart  []region.Finding // of the files beside it
	partly string           // of a schema that entries were looked at for: that not all were
}

func newTable(ctx context.Context, tg format.Target, f *file, o readOptions) (*table, error) {
	if err := affordable(f); err != nil {
		return nil, err
	}
	t := &table{name: tg.Name, f: f}
	if err := t.plan(ctx, tg.Tree, o); err != nil {
		return nil, err
	}
	if t.p == nil {
		return nil, fault.Unsupportedf(f.at.Sub(0, f.header.size), "column-metadata",
			"columns are nested deeper than stoa can show")
	}
	t.sc = arrow.NewSchema(t.p.fields, nil)
	t.odd = t.contradictions()
	t.lookAround(ctx, tg)
	for _, ph := range t.p.phys {
		t.cols = append(t.cols, ph.Column)
	}
	if tg.Tree != nil {
		if info, err := tg.Tree.Stat(ctx, tg.Name); err == nil {
			t.stamp = info.Stamp
		}
	}
	return t, t.findSorted(o)
}

func (t *table) Schema() *arrow.Schema    { return t.sc }
func (t *table) Columns() []format.Column { return t.cols }
func (t *table) Order() []format.Key      { return t.order }
func (t *table) Close() error             { return t.f.src.Close() }

func (t *table) Parts(context.Context, format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		yield(format.Part{Ref: t.name, Stamp: t.stamp, Rows: t.f.header.Rows, Bytes: t.f.at.Len}, nil)
	}
}

func (t *table) RowGroups(_ context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	if q.Strict { // of two names, schemas or files one is wrong: no row is certain to be the table's
		for _, x := range t.Findings() {
			if x.Severity >= region.Error && x.Code != "trevni.part.missing" {
				return nil, fault.Corruptf(x.At, x.Path, "%s (%s)", x.Message, x.Code)
			}
		}
	}
	return []format.RowGroup{{Part: p.Ref, Rows: t.f.header.Rows, Bytes: t.f.at.Len}}, nil
}

func (t *table) Chunk(ctx context.Context, _ format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	if col < 0 || col >= len(t.p.phys) {
		return nil, fault.Invalidf("there is no column %d", col)
	}
	return newChunk(ctx, t.f, t.p.phys[col], rows)
}

// Findings tells readers, too, that names, or all of the schema, may be wrong, and that files beside it are gone.
func (t *table) Findings() []region.Finding { return slices.Concat(t.odd, t.apart) }

// Meta is the facts of the file, and then its own metadata.
func (t *table) Meta() []format.KeyValue {
	var out []format.KeyValue
	add := func(k, v string) { out = append(out, format.KeyValue{Key: k, Value: v}) }
	h := &t.f.header
	add("format", fmt.Sprintf("Trevni, dialect %s, version %d", h.Dialect, h.Version))
	add("rows", strconv.FormatInt(h.Rows, 10))
	add("columns", strconv.Itoa(len(h.Columns)))
	add("schema", t.p.how)
	if t.p.odd != "" {
		add("schema.odd", t.p.odd)
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

// metaKey is a key for people: the empty one is allowed.
func metaKey(k string) string {
	if k == "" {
		return `""`
	}
	return k
}

func metaValue(m Pair) string {
	for _, b := range m.Value {
		if b < ' ' || b == 0x7f {
			return fmt.Sprintf("0x%x", m.Value)
		}
	}
	if badText(m.Value, []int32{0, int32(len(m.Value))}) >= 0 {
		return fmt.Sprintf("0x%x", m.Value)
	}
	return string(m.Value)
}
