package mixed

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/since"
	"stoa/format/carbon/internal/table"
	"stoa/format/internal/lake"
	"stoa/region"
	"stoa/vec"
)

// Open is format.Format.Open.
func Open(ctx context.Context, tg format.Target, op format.OpenOptions) (format.Reader, error) {
	r, err := table.Open(ctx, tg, op)
	if err != nil {
		return nil, err
	}
	if m := table.OfManaged(r); m != nil && m.O.Since != "" {
		return since.Open(ctx, m, op)
	} else if m != nil && m.O.At != "" {
		return since.OpenAt(ctx, m, op)
	}
	return with(ctx, r, op)
}

// Recover is format.Format.Recover.
func Recover(ctx context.Context, tg format.Target, op format.OpenOptions) (format.Reader, []region.Finding, error) {
	if op.Opts["since"] != "" {
		return nil, nil, fault.Invalidf("carbon: option since: what changed in a damaged table is not known")
	}
	if op.Opts["at"] != "" {
		return nil, nil, fault.Invalidf("carbon: option at: the past of a damaged table is not known")
	}
	r, found, err := table.RecoverTable(ctx, tg, op)
	if err != nil {
		return r, found, err
	}
	r, err = with(ctx, r, op)
	return r, found, err
}

// reader is a table of both kinds of files.
type reader struct {
	*lake.Table
	own *table.Managed
}

// Findings implements format.Finder.
func (r *reader) Findings() []region.Finding { return r.own.Findings() }

// Layout implements format.Layouter.
func (r *reader) Layout() format.Layout { return r.own.Layout() }

// Missing returns the error of a part that stands for missing files.
func (r *reader) Missing(ref string) error { return r.own.Missing(ref) }

// with returns r extended by the Parquet files that belong to its table.
func with(ctx context.Context, r format.Reader, op format.OpenOptions) (format.Reader, error) {
	m := table.OfManaged(r)
	if m == nil {
		return r, nil
	}
	files, err := m.Foreign(ctx)
	if err != nil || len(files) == 0 {
		return r, err
	}
	c := lake.Config{Catalogue: "the segment file", Tree: m.Tree, Schema: m.Schema(), Match: byName, Meta: m.Meta(),
		Open: op}
	for p, err := range m.Parts(ctx, format.Query{}) {
		if err != nil {
			return nil, err
		}
		c.Files = append(c.Files, ownFile(m, r, p))
	}
	for _, f := range files {
		in, err := parquetFile(m, f)
		if err != nil {
			return nil, err
		}
		c.Files = append(c.Files, in)
	}
	return &reader{lake.New(c), m}, nil
}

// byName finds a field by name: an exact match first, else ignoring case.
func byName(f arrow.Field, in []arrow.Field, path []string) int {
	if i := lake.ByName(f, in, path); i >= 0 {
		return i
	}
	return slices.IndexFunc(in, func(x arrow.Field) bool { return strings.EqualFold(x.Name, f.Name) })
}

// parquetFile returns a Parquet file with the values of its partition as an input.
func parquetFile(m *table.Managed, f table.ForeignFile) (*lake.Input, error) {
	in := &lake.Input{Name: f.Name, Rows: -1, Bytes: f.Bytes, Opts: AsSpark, Values: map[int]arrow.Array{}}
	for _, v := range f.Values {
		name, text, _ := strings.Cut(v, "=")
		i := slices.IndexFunc(m.Schema().Fields(),
			func(x arrow.Field) bool { return strings.EqualFold(x.Name, schema.Unescape(name)) })
		if i < 0 {
			return nil, fault.Corruptf(fault.Span{Object: f.Name}, "partition", "the table has no column %q", name)
		}
		b := array.NewBuilder(memory.NewGoAllocator(), m.Schema().Field(i).Type)
		defer b.Release()
		if text == schema.HiveNull {
			b.AppendNull()
		} else if err := b.AppendValueFromString(schema.Unescape(text)); err != nil {
			return nil, fault.Corruptf(fault.Span{Object: f.Name}, "partition", "%s: %v", v, err)
		}
		in.Values[i] = b.NewArray()
	}
	return in, nil
}

// ownFile returns a data file of CarbonData as an input; r reads it and supplies its deleted rows.
func ownFile(m *table.Managed, r format.Reader, p format.Part) *lake.Input {
	one := onePart{m, p}
	in := &lake.Input{Name: p.Ref, Stamp: p.Stamp, Rows: -1, Bytes: p.Bytes,
		Open: func(context.Context) (format.Reader, error) { return one, nil }}
	if o, ok := r.(format.Overlayer); ok {
		in.Deleted = func(ctx context.Context) ([]int64, error) { return deleted(ctx, one, o) }
	}
	return in
}

// onePart is a table restricted to one data file.
type onePart struct {
	*table.Managed
	part format.Part
}

// Parts implements format.Reader.
func (o onePart) Parts(context.Context, format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) { yield(o.part, nil) }
}

// deleted returns the positions of the deleted rows of a data file.
func deleted(ctx context.Context, one onePart, o format.Overlayer) (out []int64, err error) {
	groups, err := one.RowGroups(ctx, one.part, format.Query{})
	if err != nil {
		return nil, err
	}
	base := int64(0)
	for _, g := range groups {
		x, err := o.Overlay(ctx, g, nil)
		if err != nil {
			return nil, err
		}
		if x != nil {
			p, err := x.Patch(ctx, vec.Range{To: g.Rows}, nil)
			if err != nil {
				return nil, err
			}
			for i := range int(g.Rows) {
				if p.Drop != nil && p.Drop.Has(i) {
					out = append(out, base+int64(i))
				}
			}
		}
		base += g.Rows
	}
	return out, nil
}
