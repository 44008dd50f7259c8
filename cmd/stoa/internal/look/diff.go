package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/source"
	"stoa/format"
)

var diffForms = []string{"text", "json"}

// diffDoc is the document of -f json.
type diffDoc struct {
	A        string           `json:"a"`
	B        string           `json:"b"`
	Equal    bool             `json:"equal"`
	Key      []string         `json:"matched_by,omitempty"` // columns; none: rows are matched by position
	Schema   []diffColumnDoc  `json:"schema"`
	RowsA    int64            `json:"rows_a"`
	RowsB    int64            `json:"rows_b"`
	Same     int64            `json:"same"`
	Changed  int64            `json:"changed"`
	OnlyA    int64            `json:"only_a"`
	OnlyB    int64            `json:"only_b"`
	Cells    map[string]int64 `json:"changed_cells"`
	Examples []diffRowDoc     `json:"examples"`
}

type diffColumnDoc struct {
	Difference string `json:"difference"`
	Column     string `json:"column,omitempty"`
	A          string `json:"a,omitempty"`
	B          string `json:"b,omitempty"`
	Compared   bool   `json:"compared"`
}

type diffRowDoc struct {
	RowA  *int64        `json:"row_a"`
	RowB  *int64        `json:"row_b"`
	Key   []diffCellDoc `json:"key,omitempty"`
	Cells []diffCellDoc `json:"cells"`
}

// diffCellDoc is a cell. The side without the row is null.
type diffCellDoc struct {
	Column string  `json:"column"`
	A      *string `json:"a"`
	B      *string `json:"b"`
}

// diffing holds the flags of diff.
type diffing struct {
	source.SourceFlags
	source.SelectFlags
	reading.DamageFlags
	output.OutputFlags
	on         []string
	sides      [2]string // --from-a, --from-b
	tolerance  float64
	relative   float64
	memory     string
	valuesOnly bool
	byPosition bool
}

func DiffCmd(a *cli.App) *cobra.Command {
	var d diffing
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two tables of any formats, cell by cell",
		Long: `Compare two tables, whatever their formats: schema, rows and cells. Rows are matched by the
columns of --on; without it by the primary key, if one table has a known key and the other has its
columns; or else by position (--by-position, --rows). Cells are compared by their meaning, not their
type. The status is 3 if there is a difference.

An int8 equals the same number as int64, a string in a dictionary a plain one, a time the text for it,
bytes (except in --on) their base64 text; all NaN are equal, and null equals null. A column with different
types in A and B is a difference, unless --values is given. Nullability and the order of columns are
reported, but are not differences.

By key, equal rows with the same key are matched first, whatever their order, and then the remaining ones
in order. The rows of A, and those of B that equal none, are kept in memory; if they need more than
--memory, both tables are read several times, a part of the keys each time. -n is the number of differing
rows to show.`,
		Example: `  stoa diff block.cfile block.parquet
  stoa diff kudu#d_major rows.csv --on id --columns a,c,ts --tolerance 1e-9 --values`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return &cli.UseError{Message: fmt.Sprintf("diff compares two tables; %s",
					display.Count(int64(len(args)), "path")+" given"),
					Hint: "several files of one table: name their directory, or quote a glob"}
			}
			return cli.OnceDash(args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return d.run(cmd.Context(), a, args) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&d.on, "on", nil, "match rows by these columns: `a,b`")
	fl.Float64Var(&d.tolerance, "tolerance", 0, "floating-point numbers may differ by `DISTANCE`")
	fl.Float64Var(&d.relative, "relative", 0,
		"floating-point numbers may differ by this `PART` of the larger one, such as 1e-12")
	for i, side := range []string{"a", "b"} {
		fl.StringVar(&d.sides[i], "from-"+side, "", "read "+strings.ToUpper(side)+" as `FORMAT`; --from is for both")
		cli.Complete(cmd, "from-"+side, a.FormatNames)
	}
	fl.BoolVar(&d.valuesOnly, "values", false, "ignore different types if all values are the same")
	fl.BoolVar(&d.byPosition, "by-position", false, "match rows by position, even if there is a key")
	fl.StringVar(&d.memory, "memory", "1GiB", "by key: keep about `SIZE` of rows in memory")
	cli.CompleteWith(cmd, "on", source.CompleteColumns(a, &d.SourceFlags))
	d.SelectFlags.Register(a, cmd, &d.SourceFlags)
	d.SelectFlags.RegisterLimit(cmd, 10, "show at most `N` differing rows")
	d.OutputFlags.Register(cmd, diffForms, "default text")
	d.DamageFlags.Register(cmd, "fail")
	d.SourceFlags.Register(a, cmd)
	return cli.First(cmd, "on", "columns", "values")
}

func (d *diffing) options() (stoa.DiffOptions, error) {
	o := stoa.DiffOptions{Absolute: d.tolerance, Relative: d.relative, Examples: int(d.Limit)}
	switch {
	case d.Limit < 0:
		return o, cli.WrongUse("-n %d: a number of rows is not negative", d.Limit)
	case !(d.tolerance >= 0) || !(d.relative >= 0):
		return o, cli.WrongUse("a tolerance is not negative")
	case d.Limit == 0:
		o.Examples = -1
	}
	for _, c := range d.on {
		names, err := source.SplitNames(c, false)
		if err != nil {
			return o, err
		}
		o.On = append(o.On, names...)
	}
	var err error
	if o.Memory, err = cli.ParseSize("--memory", d.memory); err != nil {
		return o, err
	}
	d.Limit, d.Limited = 0, nil // it limits the examples, not the scan
	if o.Scan, err = d.SelectFlags.Spec(); err != nil {
		return o, err
	}
	return o, d.DamageFlags.Apply(&o.Scan)
}

func (d *diffing) run(ctx context.Context, a *cli.App, args []string) error {
	if err := d.OutputFlags.Check(diffForms); err != nil {
		return err
	}
	o, err := d.options()
	if err != nil {
		return err
	}
	var tables [2]*stoa.Table
	for i, p := range args {
		oo, err := d.sourceOptions(ctx, a, args, i)
		if err != nil {
			return err
		}
		if tables[i], err = source.OpenAll(a, ctx, []string{p}, oo); err != nil {
			return err
		}
		defer tables[i].Close()
		if err := a.CheckOutputs(tables[i].Sources(), d.File, d.Manifest); err != nil {
			return err
		}
	}
	if err := expandBoth(&o, tables); err != nil {
		return err
	}
	if len(o.On) == 0 && !d.byPosition && d.SelectFlags.Rows == "" {
		if o.On = knownKey(tables, o.Scan.Columns); len(o.On) > 0 {
			a.Detail("rows are matched by key: %s", strings.Join(o.On, ", "))
		}
	}
	r, err := stoa.Diff(ctx, tables[0], tables[1], o)
	differs := false
	if err == nil {
		doc := d.document(args, r)
		doc.Key = o.On
		differs = !doc.Equal
		if r.Parts > 1 {
			a.Detail("both tables were read %d times: the rows did not fit into %s", r.Parts, d.memory)
		}
		err = output.PutDoc(a, ctx, &d.OutputFlags, func(w io.Writer) error { return doc.write(w, d.Form) })
	}
	err = d.DamageFlags.Report(ctx, a, args, append(tables[0].Findings(), tables[1].Findings()...), err)
	if err == nil && differs {
		err = cli.ErrDamage
	}
	return err
}

// expandBoth expands the patterns of --columns over the columns of both tables, as one may lack some. The key is always
// compared.
func expandBoth(o *stoa.DiffOptions, tables [2]*stoa.Table) (err error) {
	fields := slices.Clone(tables[0].Schema().Fields())
	for _, f := range tables[1].Schema().Fields() {
		if !slices.ContainsFunc(fields, func(x arrow.Field) bool { return x.Name == f.Name }) {
			fields = append(fields, f)
		}
	}
	if o.Scan.Columns, err = source.ExpandColumns(fields, o.Scan.Columns); err != nil || len(o.Scan.Columns) == 0 {
		return err
	}
	for _, k := range o.On {
		if !slices.Contains(o.Scan.Columns, k) {
			o.Scan.Columns = append(o.Scan.Columns, k)
		}
	}
	return nil
}

// knownKey returns the primary key by which rows can be matched: one table knows it, and the other has its columns and
// knows no other key. Columns that are bytes must be so in both, as the text of bytes is not a key. columns are those
// that are compared (none: all); a key with other columns is not used.
func knownKey(tables [2]*stoa.Table, columns []string) []string {
	key, other := tables[0].PrimaryKey(), tables[1].PrimaryKey()
	if len(key) == 0 {
		key, other = other, nil
	}
	if len(other) > 0 && !slices.Equal(key, other) {
		return nil
	}
	for _, name := range key {
		a, _ := tables[0].Schema().FieldsByName(name)
		b, _ := tables[1].Schema().FieldsByName(name)
		if len(a) != 1 || len(b) != 1 || len(columns) > 0 && !slices.Contains(columns, name) ||
			arrow.IsBaseBinary(a[0].Type.ID()) != arrow.IsBaseBinary(b[0].Type.ID()) ||
			(a[0].Type.ID() == arrow.BINARY) != (b[0].Type.ID() == arrow.BINARY) {
			return nil
		}
	}
	return key
}

// sourceOptions returns the options for one of the two sides: a reading option applies if the side's format has it, or
// if neither has.
func (d *diffing) sourceOptions(ctx context.Context, a *cli.App, args []string, side int) (stoa.OpenOptions, error) {
	var knows [2]*format.Format
	for i, p := range args {
		one := source.SourceFlags{From: cmp.Or(d.sides[i], d.From), Changed: func(string) bool { return false }}
		o, err := one.Options(ctx, a, nil)
		if err != nil {
			return o, err
		}
		// if the format cannot be detected, opening reports the reason
		knows[i], _ = stoa.Probe(ctx, format.Target{Tree: o.Tree, Name: cli.WithoutTable(p)}, o)
	}
	has := func(i int, key string) bool { return knows[i] == nil || source.HasKey(knows[i], key) }
	f := source.SourceFlags{From: cmp.Or(d.sides[side], d.From), NoVerify: d.NoVerify, MaxPage: d.MaxPage,
		MaxMeta: d.MaxMeta, Limits: d.Limits, Own: d.Own, OptionFlags: d.OptionFlags}
	f.Changed = func(flag string) bool {
		if flag == "memory" {
			return d.Changed(flag)
		}
		i := slices.IndexFunc(d.OptionFlags, func(w *cli.OptionFlag) bool { return w.Flag == flag })
		return d.Changed(flag) && (has(side, d.OptionFlags[i].Key) || !has(1-side, d.OptionFlags[i].Key))
	}
	for _, kv := range d.Opts {
		if key, _, _ := strings.Cut(kv, "="); has(side, key) || !has(1-side, key) {
			f.Opts = append(f.Opts, kv)
		}
	}
	return f.Options(ctx, a, args[side:side+1])
}

func (d *diffing) document(args []string, r *stoa.DiffResult) *diffDoc {
	doc := &diffDoc{A: args[0], B: args[1], RowsA: r.Rows[0], RowsB: r.Rows[1], Same: r.Same, Changed: r.Changed,
		OnlyA: r.Only[0], OnlyB: r.Only[1],
		Cells: r.Cells, Schema: []diffColumnDoc{}, Examples: []diffRowDoc{}}
	doc.Equal = r.Changed == 0 && r.Only == [2]int64{}
	for _, c := range r.Schema {
		doc.Equal = doc.Equal && (!c.Differs() || d.valuesOnly && c.Kind == "type" && !c.Incomparable)
		doc.Schema = append(doc.Schema, diffColumnDoc{c.Kind, c.Name, c.A, c.B,
			(c.Kind == "type" || !c.Differs()) && !c.Incomparable})
	}
	for _, x := range r.Examples {
		row := diffRowDoc{RowA: reading.Known(x.At[0]), RowB: reading.Known(x.At[1]), Cells: []diffCellDoc{}}
		cells := func(in []stoa.DiffCell) (out []diffCellDoc) {
			for _, c := range in {
				o := diffCellDoc{Column: c.Column}
				if x.At[0] >= 0 {
					o.A = &c.A
				}
				if x.At[1] >= 0 {
					o.B = &c.B
				}
				out = append(out, o)
			}
			return out
		}
		row.Key, row.Cells = cells(x.Key), append(row.Cells, cells(x.Cells)...)
		doc.Examples = append(doc.Examples, row)
	}
	return doc
}

func (doc *diffDoc) write(w io.Writer, form string) error {
	if form == "json" {
		b, err := indented(doc)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
	var b strings.Builder
	for _, c := range doc.Schema {
		b.WriteString(c.text() + "\n")
	}
	for _, r := range doc.Examples {
		r.print(&b)
	}
	if more := doc.Changed + doc.OnlyA + doc.OnlyB - int64(len(doc.Examples)); more > 0 && len(doc.Examples) > 0 {
		fmt.Fprintf(&b, "… and %s more\n", display.Count(more, "row"))
	}
	b.WriteString(doc.summary())
	_, err := io.WriteString(w, b.String())
	return errors.Join(err)
}

func (c diffColumnDoc) text() string {
	s := ""
	switch c.Difference {
	case "only in a":
		s = fmt.Sprintf("column %s (%s) is only in A", c.Column, c.A)
	case "only in b":
		s = fmt.Sprintf("column %s (%s) is only in B", c.Column, c.B)
	case "order":
		s = "the columns come in another order"
	default:
		s = fmt.Sprintf("column %s: %s in A, %s in B", c.Column, c.A, c.B)
		if !c.Compared {
			s += ": nothing in common, its cells were not compared"
		}
	}
	return display.OneLine(s)
}

// print prints a row: a line for each cell that differs, or one line if the row is on one side only.
func (r *diffRowDoc) print(b *strings.Builder) {
	side := func(c diffCellDoc) string {
		if c.A != nil {
			return shorten(*c.A)
		}
		return shorten(*c.B)
	}
	var key []string
	for _, k := range r.Key {
		key = append(key, k.Column+"="+side(k))
	}
	name := strings.Join(key, ", ")
	switch {
	case r.RowA != nil && r.RowB != nil:
		if name == "" {
			name = fmt.Sprintf("row %d", *r.RowA)
		}
		for _, c := range r.Cells {
			b.WriteString(display.OneLine(fmt.Sprintf("%s: %s is %s in A, %s in B", name, c.Column, shorten(*c.A),
				shorten(*c.B))) + "\n")
		}
		return
	case r.RowA != nil:
		name = strings.TrimPrefix(name+": ", ": ") + fmt.Sprintf("row %d of A is not in B", *r.RowA)
	default:
		name = strings.TrimPrefix(name+": ", ": ") + fmt.Sprintf("row %d of B is not in A", *r.RowB)
	}
	var cells []string
	for _, c := range r.Cells[:min(8, len(r.Cells))] {
		cells = append(cells, c.Column+"="+side(c))
	}
	if len(r.Cells) > 8 {
		cells = append(cells, "…")
	}
	if len(cells) > 0 {
		name += " (" + strings.Join(cells, ", ") + ")"
	}
	b.WriteString(display.OneLine(name) + "\n")
}

func (doc *diffDoc) summary() string {
	if doc.Changed+doc.OnlyA+doc.OnlyB == 0 {
		s := fmt.Sprintf("%s, all the same", display.Count(doc.Same, "row"))
		if !doc.Equal {
			s += "; the schemas differ"
		}
		return s + "\n"
	}
	s := fmt.Sprintf("%s in A, %s in B: %s the same, %s changed, %s only in A, %s only in B\n",
		display.Count(doc.RowsA, "row"), display.Thousands(doc.RowsB),
		display.Thousands(doc.Same), display.Thousands(doc.Changed), display.Thousands(doc.OnlyA),
		display.Thousands(doc.OnlyB))
	for _, name := range slices.Sorted(maps.Keys(doc.Cells)) {
		s += display.OneLine(fmt.Sprintf("  %s: %s changed", name, display.Count(doc.Cells[name], "cell"))) + "\n"
	}
	return s
}
