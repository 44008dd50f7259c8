package rerun

import (
	"context"
	"path"
	"path/filepath"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/pieces"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/arrowschema"
	"stoa/internal/content"
	"stoa/region"
	"stoa/store"
)

// Back is what was read of a table's output.
type Back struct {
	Sum   content.Sum
	Whole bool // its types allow the checksum to be compared
	Other bool // it is certainly not what was written, whatever its rows are
}

// Guesses reports whether a format is text, of which the types are guessed when it is read.
func Guesses(f *format.Format) bool {
	return f != nil && f.UTF8 && f.Reread != nil && len(f.Extensions) > 0
}

// ReadBack reads the output of a table, which may be several files; wo is how it was written.
func (d *Table) ReadBack(ctx context.Context, a *cli.App, name string, wo stoa.CreateOptions) (all Back, err error) {
	if len(d.Pieces) == 0 {
		return d.readFile(ctx, a, name, wo)
	}
	all.Whole = true
	for _, p := range d.Pieces {
		if !filepath.IsLocal(p.Name) {
			return all, fault.Invalidf("%s: expected a file in %s", p.Name, name)
		}
		one, err := d.ReadPiece(ctx, a, filepath.Join(name, p.Name), p, wo)
		if err != nil {
			return all, err
		}
		all = Back{all.Sum.Plus(one.Sum), all.Whole && one.Whole, all.Other || one.Other}
	}
	return all, nil
}

// ReadPiece reads one of several files. If its types allow no comparison of the rows, its size has to be that of the
// file that was written.
func (d *Table) ReadPiece(ctx context.Context, a *cli.App, name string, p pieces.File, wo stoa.CreateOptions) (Back,
	error) {
	one := *d
	one.Checksum = p.Checksum
	b, err := one.readFile(ctx, a, name, wo)
	if err != nil || b.Whole {
		return b, err
	}
	info, err := a.Stat(ctx, name)
	b.Other = b.Other || err == nil && !info.Dir && info.Size != p.Bytes
	return b, err
}

func (d *Table) readFile(ctx context.Context, a *cli.App, name string, wo stoa.CreateOptions) (b Back, err error) {
	o := stoa.OpenOptions{Formats: a.Formats, Tree: store.Roots(cli.Tree{A: a})}
	sc, err := arrowschema.Decode(d.Arrow)
	if err != nil {
		return b, err
	}
	if o.From = d.Catalogue; len(d.Partitions) > 0 {
		o.From = pieces.HiveFormat
	}
	t, err := stoa.Open(ctx, name, o)
	if err != nil {
		return b, err
	}
	defer t.Close()
	out, rows := t.Schema(), cli.Batches(t.Scan(ctx, stoa.ScanSpec{Alloc: cli.Pool, Unordered: true}))
	guesses := Guesses(a.Format(wo.To))
	plan := planOf(sc, out, guesses)
	s, as := plan.Summer(1), content.Between(sc, out).Summer(1)
	for x, err := range rows {
		if err != nil {
			return b, err
		}
		s.Add(x)
		as.Add(x)
	}
	named := slices.Equal(names(sc), names(out))
	b.Sum, b.Whole = s.Sum(), len(plan.Incomparable()) == 0 && (named || !guesses)
	if sum := as.Sum(); sum.String() == d.Checksum && named { // proven with the types that are guessed of its text
		b.Sum, b.Whole = sum, true
	}
	switch {
	case slices.ContainsFunc(t.Findings(), func(x region.Finding) bool { return x.Severity >= region.Error }):
		b.Other = true // such as a file that says that it is of another backup
	case !guesses && !(named && b.Whole):
		b.Other = d.other(ctx, path.Base(name), sc, out, wo)
	}
	return b, nil
}

// other reports whether a table of these columns is never read as out if it was written with wo: one without rows, in
// memory, shows how it is read.
func (d *Table) other(ctx context.Context, name string, sc, out *arrow.Schema, wo stoa.CreateOptions) bool {
	tree := store.NewMemory(nil)
	wo.Sink, wo.NoCheck = tree.Sink(name), true
	w, err := stoa.Create(ctx, name, sc, wo)
	if err != nil {
		return false
	}
	if _, err := w.Close(ctx); err != nil {
		_ = w.Abort(ctx)
		return false
	}
	t, err := stoa.Open(ctx, name, stoa.OpenOptions{Formats: wo.Formats, Tree: tree})
	if err != nil {
		return false
	}
	defer t.Close()
	if !slices.Equal(names(t.Schema()), names(out)) {
		return true
	}
	known := planOf(sc, t.Schema(), false).Incomparable()
	return slices.ContainsFunc(planOf(sc, out, false).Incomparable(), func(c string) bool {
		i, j := out.FieldIndices(c), t.Schema().FieldIndices(c)
		return !slices.Contains(d.Partitions, c) && (!slices.Contains(known, c) || len(i) == 1 && len(j) == 1 &&
			!arrow.TypeEqual(out.Field(i[0]).Type, t.Schema().Field(j[0]).Type))
	})
}

// names returns the names of the columns, sorted.
func names(sc *arrow.Schema) (all []string) {
	for _, f := range sc.Fields() {
		all = append(all, f.Name)
	}
	slices.Sort(all)
	return all
}

// planOf returns the plan by which the rows of an output are compared with those written.
func planOf(sc, out *arrow.Schema, guesses bool) *content.Plan {
	plan := content.Same(sc).Reading(sc, out)
	for _, f := range sc.Fields() {
		if i := out.FieldIndices(f.Name); guesses && len(i) == 1 && respelled(f.Type, out.Field(i[0]).Type) {
			plan.Leave(f.Name)
		}
	}
	return plan
}

// respelled reports whether text has values of another type than those that were written to it: bytes, in base64, and
// numbers of less precision, with fewer digits. Their checksums need not be those of the values.
func respelled(in, out arrow.DataType) bool {
	a, nested := in.(arrow.NestedType)
	b, alike := out.(arrow.NestedType)
	if nested && alike && a.NumFields() == b.NumFields() {
		for i, f := range a.Fields() {
			if respelled(f.Type, b.Fields()[i].Type) {
				return true
			}
		}
		return false
	}
	if d, ok := in.(*arrow.DictionaryType); ok {
		in = d.ValueType
	}
	switch in.ID() {
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.BINARY_VIEW, arrow.FIXED_SIZE_BINARY, arrow.FLOAT16, arrow.FLOAT32:
		return in.ID() != out.ID()
	}
	return false
}
