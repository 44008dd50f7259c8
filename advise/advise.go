// Package advise measures the size that a table would have if it were written in other ways.
package advise

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"stoa"
	"stoa/internal/sorted"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
	"stoa/vec"
)

// Options says what is measured.
type Options struct {
	To      string          // format name; "" = that of the table
	Formats []format.Format // nil = stoa.Formats
	// Rows and Bytes (after decompression) limit how much of the table is written in each way; 0 = 1,048,576
	// rows, 64 MiB. A larger table is sampled in four places, and the result is scaled to all rows.
	Rows, Bytes int64
}

// Advice is the size of a table as it is stored, and as it would be if written in other ways.
type Advice struct {
	Format        string
	Rows, Sampled int64
	Columns       []stoa.ColumnSize // as stored
	Trials        []Trial           // the best first: fewest bytes, with dictionaries only if they save 1 %
	// Kept are the options, of all trials, by which an output keeps properties of the table besides its rows: an order,
	// filters, encryption. Lost are those of them that cannot be given; an output lacks these properties.
	Kept, Lost map[string]string
}

// Trial is the size of the table written in one way, scaled to all rows.
type Trial struct {
	Opts    map[string]string
	Columns []stoa.ColumnSize
	Stored  int64
}

// Stored is the sum of all columns as stored.
func (a *Advice) Stored() (n int64) {
	for _, c := range a.Columns {
		n += c.Stored
	}
	return n
}

// tried are the compressions that are measured: all others are slower to read.
var tried = []string{"none", "null", "snappy", "lz4", "zstd", "zlib", "deflate"}

// Of writes a sample of the table's rows with the options of a format's writer that determine size, and
// measures the pages: every compression, with the encodings and dictionaries that the writer chooses, and the best one
// without dictionaries.
func Of(ctx context.Context, t *stoa.Table, o Options) (*Advice, error) {
	f, err := advisable(t, o)
	if err != nil {
		return nil, err
	}
	out := &Advice{Format: f.Name}
	var raw int64
	if out.Columns, raw, err = t.ColumnSizes(ctx); err != nil {
		return nil, err
	}
	if out.Rows, err = t.Rows(ctx); err != nil {
		return nil, err
	}
	if out.Rows < 0 {
		return nil, fault.Unsupportedf(fault.Span{Object: t.Sources()[0].Name}, "",
			"how many rows there are is not known")
	}
	if out.Rows == 0 {
		return out, nil
	}
	parts := sampled(out.Rows, raw, o)
	for _, r := range parts {
		out.Sampled += r.Len()
	}
	out.keep(ctx, t, f)
	var ways []map[string]string
	key, all := compressions(f)
	for _, c := range all {
		ways = append(ways, map[string]string{key: c})
	}
	if err := try(ctx, t, f, out, parts, ways); err != nil {
		return nil, err
	}
	if choices(f, "dictionary", []string{"false"}) != nil {
		plain := maps.Clone(out.Trials[0].Opts)
		plain["dictionary"] = "false"
		err = try(ctx, t, f, out, parts, []map[string]string{plain})
		const worth = 0.99 // filters and readers are faster with dictionaries
		if x := out.Trials; x[0].Opts["dictionary"] != "" && float64(x[0].Stored) > worth*float64(x[1].Stored) {
			x[0], x[1] = x[1], x[0]
		}
	}
	return out, err
}

// keep finds the options that preserve properties of the table besides its rows. Options with which nothing can be
// written are dropped: a key file may lack the footer's key.
func (a *Advice) keep(ctx context.Context, t *stoa.Table, f *format.Format) {
	kept := t.KeptBy()
	a.Kept, a.Lost = map[string]string{}, map[string]string{}
	about := [][]string{{"bloom"}, {"sorting-columns", "row-group-rows"},
		{"key-file", "encryption", "plain-footer", "plain-columns", "store-aad-prefix"}}
	for _, keys := range about {
		some, available := map[string]string{}, f.Name == t.Sources()[0].Format
		for _, k := range keys {
			if v, ok := kept[k]; ok {
				some[k] = v
				available = available && v != ""
			}
		}
		if keys[0] == "sorting-columns" { // the rows of several files may not be in order
			available = available && len(t.Sources()) == 1
		} else if available && len(some) > 0 {
			part := &Advice{Rows: a.Rows, Sampled: 1, Kept: some}
			available = try(ctx, t, f, part, vec.Ranges{{To: 1}}, []map[string]string{{}}) == nil
		}
		if available {
			maps.Copy(a.Kept, some)
		} else {
			maps.Copy(a.Lost, some)
		}
	}
}

// trial returns the options of a trial: the sample's rows may be in another order, as they come from several places.
func (a *Advice) trial(way map[string]string) map[string]string {
	opts := maps.Clone(a.Kept)
	maps.Copy(opts, way)
	delete(opts, "sorting-columns")
	delete(opts, "row-group-rows")
	return opts
}

// advisable returns the format that would be written.
func advisable(t *stoa.Table, o Options) (*format.Format, error) {
	formats, name, at := o.Formats, o.To, t.Sources()[0]
	if formats == nil {
		formats = stoa.Formats
	}
	if name == "" {
		name = at.Format
	}
	i := slices.IndexFunc(formats, func(f format.Format) bool { return f.Name == name })
	if i < 0 {
		return nil, fault.Invalidf("there is no format %q to write", name)
	}
	f := &formats[i]
	if _, all := compressions(f); f.Create == nil || len(all) < 2 {
		return nil, fault.Unsupportedf(fault.Span{Object: at.Name}, "",
			"the writer of %s has no compressions to choose from", f.Name)
	}
	return f, nil
}

// compressions returns the writer's compressions that are tried, and the option that selects one.
func compressions(f *format.Format) (key string, all []string) {
	for _, key = range []string{"compression", "codec"} {
		if all = choices(f, key, tried); all != nil {
			return key, all
		}
	}
	return "", nil
}

// choices returns those of some values that a writer's option accepts.
func choices(f *format.Format, key string, of []string) (out []string) {
	for _, k := range f.WriteKeys {
		if k.Name != key {
			continue
		}
		values := strings.FieldsFunc(k.Values, func(r rune) bool { return strings.ContainsRune("|, ", r) })
		for _, v := range of {
			if slices.Contains(values, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

// sampled returns the rows that are measured: all, or four ranges with equal gaps.
func sampled(rows, raw int64, o Options) vec.Ranges {
	rowLimit := cmp.Or(o.Rows, 1<<20)
	if each := raw / rows; each > 0 {
		rowLimit = min(rowLimit, max(cmp.Or(o.Bytes, 64<<20)/each, 1024))
	}
	if rows <= rowLimit {
		return vec.Ranges{{From: 0, To: rows}}
	}
	const places = 4
	var out vec.Ranges
	for i := range int64(places) {
		from := i * (rows - rowLimit/places) / (places - 1)
		out = append(out, vec.Range{From: from, To: from + rowLimit/places})
	}
	return out
}

// try writes the sample in several ways at once.
func try(ctx context.Context, t *stoa.Table, f *format.Format, a *Advice, parts vec.Ranges,
	ways []map[string]string) error {
	sc, err := t.ScanSchema(stoa.ScanSpec{})
	if err != nil {
		return err
	}
	trials := make([]*trial, 0, len(ways))
	defer func() {
		for _, x := range trials {
			_ = x.w.Abort(ctx)
		}
	}()
	for _, opts := range ways {
		x := &trial{tree: store.NewMemory(nil), name: "sample", keys: a.Kept["key-file"]}
		if len(f.Extensions) > 0 {
			x.name += f.Extensions[0]
		}
		if x.w, err = stoa.Create(ctx, x.name, sc, stoa.CreateOptions{Formats: []format.Format{*f}, To: f.Name,
			Opts: a.trial(opts), Rows: a.Sampled, Sink: x.tree.Sink(x.name), NoCheck: true}); err != nil {
			return err
		}
		trials = append(trials, x)
	}
	for _, r := range parts {
		for b, err := range t.Scan(ctx, stoa.ScanSpec{Rows: r}) {
			if err != nil {
				return err
			}
			for _, x := range trials {
				if err := x.w.Write(ctx, b); err != nil {
					return fault.OfRows(err)
				}
			}
		}
	}
	for i, x := range trials {
		made, err := x.sizes(ctx, f)
		if err != nil {
			return err
		}
		y := Trial{Opts: ways[i], Columns: made}
		for k := range y.Columns {
			c := &y.Columns[k]
			c.Stored = int64(float64(c.Stored) * float64(a.Rows) / float64(a.Sampled))
			y.Stored += c.Stored
		}
		a.Trials = append(a.Trials, y)
	}
	sorted.StablyBy(a.Trials, func(x, y Trial) int { return cmp.Compare(x.Stored, y.Stored) })
	return nil
}

// trial is a sample being written in one way.
type trial struct {
	tree *store.Memory
	name string
	keys string // the key file with which it is encrypted
	w    *stoa.Writer
}

// sizes finishes the sample and measures its columns.
func (x *trial) sizes(ctx context.Context, f *format.Format) ([]stoa.ColumnSize, error) {
	if _, err := x.w.Close(ctx); err != nil {
		return nil, fault.OfRows(err)
	}
	o := stoa.OpenOptions{Formats: []format.Format{*f}, From: f.Name, Tree: x.tree, KeepPages: -1}
	if x.keys != "" {
		o.Opts = map[string]string{"key-file": x.keys}
	}
	if info, err := x.tree.Stat(ctx, x.name); err == nil && info.Dir {
		o.From = ""
	}
	back, err := stoa.OpenAll(ctx, []string{path.Clean(x.name)}, o)
	if err != nil {
		return nil, err
	}
	defer back.Close()
	out, _, err := back.ColumnSizes(ctx)
	return out, err
}
