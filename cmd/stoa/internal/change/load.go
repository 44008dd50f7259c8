package change

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/schemafmt"
	"stoa/cmd/stoa/internal/source"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"stoa"
	"stoa/fault"
)

// loading is one run of stoa load.
type loading struct {
	app          *cli.App
	src          source.SourceFlags
	sel          source.SelectFlags
	opts         []string
	ways, memory string
	partition    []string
	unchecked    bool
	overwrite    bool
	bad          badRecords
	staging      staging
	form         string
	key          string // of merge
	dry          *bool
}

func MergeCmd(a *cli.App) *cobra.Command {
	l := loading{app: a}
	cmd := &cobra.Command{
		Use:   "merge STORE#DATABASE.TABLE PATH... --key COLUMN,COLUMN",
		Short: "Add rows to a CarbonData table, replacing those with the same key",
		Long: `Add the rows of other tables to a CarbonData table; each replaces the rows with the same
values in the key columns. This is one change, as MERGE INTO … WHEN MATCHED UPDATE, WHEN NOT MATCHED INSERT is. The
rows need every column of the table, and each key may occur only once; a key with a null equals no
other. The keys are kept in memory.`,
		Example: `  stoa merge store#sales.orders orders-2.csv --source-opt header=true --key id
  stoa merge store#sales.orders orders-1.csv --source-opt header=true --key id --dry-run`,
		Args: cli.Wants(cobra.MinimumNArgs(2)),
		RunE: l.run,
	}
	cmd.Flags().StringVar(&l.key, "key", "", "match rows by these columns, `A,B` (required)")
	l.flags(a, cmd)
	return cli.First(cmd, "key", "source-opt", "where")
}

func LoadCmd(a *cli.App) *cobra.Command {
	l := loading{app: a}
	cmd := &cobra.Command{
		Use:   "load STORE#DATABASE.TABLE PATH...",
		Short: "Add rows to a CarbonData table, as a new segment",
		Long: `Add the rows of other tables to a CarbonData table, as a new segment. Columns are matched by
name. A column that the rows lack is null; a column that the table lacks is an error. Several PATHs are
one table: they have the same columns in the same order, and are refused else. The new segment becomes
part of the table only after it was read back and compared; if anything fails, the table is unchanged, and
stoa clean removes the remains.

Values of other types are accepted if they fit exactly. In CSV and JSON lines, the table's types are used
to parse nested, binary, decimal and text columns, unless --schema gives others. The comparison covers the
number of rows, and the values of columns of the same kind of type (not of texts that became numbers or
times); if they differ, the status is 1. Columns whose values --opt timestamps=truncate or nulls=merge
changed are named, with the number of values.

Columns that the table's property dictionary_include names are written as codes of a global dictionary.
--dictionary says where the codes come from: single-pass assigns them as the rows come; two-pass reads the
rows twice, and sorts the values first; predefined:DIR takes them from files named after the columns (the
first field of each line of CSV); all:FILE from lines INDEX,VALUE, where INDEX is the number of a column
of the rows, from 0. Values that the last two lack are refused. --opt version=2 (or 1) writes data files
as CarbonData 1.0 has them, --opt layout=rows a finished streaming segment. The processes of one job stage
rows, which nobody sees (--stage); one process then commits them (--commit).`,
		Example: `  stoa load store#sales.orders orders-*.csv --source-opt header=true
  stoa load store#sales.orders orders.parquet --where "day >= date '2024-01-01'"
  stoa load store#sales.visits visits.parquet --dictionary two-pass`,
		Args: func(cmd *cobra.Command, args []string) error {
			if l.staging.asked() {
				return cli.Wants(cobra.MinimumNArgs(1))(cmd, args)
			}
			return cli.Wants(cobra.MinimumNArgs(2))(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.staging.check(args); err != nil {
				return err
			}
			if l.staging.asked() {
				return l.inPhases(cmd, args)
			}
			return l.run(cmd, args)
		},
	}
	l.staging.flags(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&l.overwrite, "overwrite", false,
		"replace all rows of the table, or those of --partition")
	fl.StringArrayVar(&l.partition, "partition", nil, "put all rows into the partition `NAME=VALUE` (NAME alone: "+
		"null); rows with another value in that column are refused, it need not be there; repeatable")
	l.bad.flags(cmd)
	l.flags(a, cmd)
	return cli.First(cmd, "source-opt", "where", "overwrite")
}

// flags adds the flags that load and merge have in common.
func (l *loading) flags(a *cli.App, cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&l.opts, "opt", nil,
		"set an option of the writer, `KEY=VALUE` (stoa formats carbon lists them); repeatable")
	fl.StringVar(&l.ways, "dictionary", "", "how columns with a global dictionary get their codes, `WAY`: "+
		"single-pass (default), two-pass, predefined:DIR, all:FILE")
	fl.StringVar(&l.memory, "memory", "", "sort at most `SIZE` of rows in memory, for example 1GiB (default "+
		"256MiB); more rows are sorted in pieces")
	fl.BoolVar(&l.unchecked, "no-check", false,
		"do not read the segment back to compare it with the input")
	fl.StringVarP(&l.form, "format", "f", "text",
		"say what was added as `FORM`: text, a line on standard error; json, an object on standard output")
	cli.Complete(cmd, "format", func() []string { return output.SummaryForms })
	l.sel.Register(a, cmd, &l.src)
	fl.Lookup("parallel").Usage = "read with `N` workers, and write N data files side by side (default: as many " +
		"workers as there are cores, one file)"
	l.src.Register(a, cmd)
	l.src.Shared = []string{"allow-external"}
	l.dry = dryRun(cmd)
	limitFlags(cmd)
}

// request returns what is loaded from the sources, and how.
func (l *loading) request(ctx context.Context, from []string) (o stoa.AppendOptions, spec stoa.ScanSpec,
	oo stoa.OpenOptions, err error) {
	if o, err = l.options(); err != nil {
		return o, spec, oo, err
	}
	if spec, err = l.sel.Spec(); err != nil {
		return o, spec, oo, err
	}
	oo, err = l.src.Options(ctx, l.app, from)
	return o, spec, oo, err
}

// options returns the options of the load.
func (l *loading) options() (o stoa.AppendOptions, err error) {
	if !slices.Contains(output.SummaryForms, l.form) {
		return o, &cli.UseError{Message: "-f " + l.form + " is not a form of the summary",
			Hint: "the forms are text and json"}
	}
	o = stoa.AppendOptions{Tasks: l.sel.Parallel, Dictionary: l.ways, NoCheck: l.unchecked, Overwrite: l.overwrite,
		DryRun: *l.dry}
	if len(l.partition) > 0 {
		if o.Partition, err = partitionOf(l.partition); err != nil {
			return o, err
		}
	}
	if o.Opts, err = source.KeyValues("--opt", l.opts); err != nil {
		return o, err
	}
	if l.memory != "" {
		n, err := cli.ParseSize("--memory", l.memory)
		if err != nil {
			return o, err
		}
		o.Opts = withOption(o.Opts, "memory", strconv.FormatInt(n, 10))
	}
	return o, nil
}

func (l *loading) run(cmd *cobra.Command, args []string) error {
	ctx, began := cmd.Context(), time.Now()
	c, err := openChanger(l.app, cmd, args[0])
	if err != nil {
		return err
	}
	o, spec, oo, err := l.request(ctx, args[1:])
	if err != nil {
		return err
	}
	t, err := openFor(l.app, ctx, c, args[1:], oo, &l.bad)
	if err != nil {
		return err
	}
	defer t.Close()
	sc, err := t.ScanSchema(spec)
	if err == nil {
		err = l.bad.begin(ctx, l.app, args[0], sc, &o)
	}
	if err != nil {
		return err
	}
	if len(t.Sources()) > 1 {
		l.bad.of = " of all files"
	}
	given, sc, scan := false, l.bad.schema(sc), t.Scan(ctx, spec)
	if l.bad.asked() {
		scan = l.bad.parsed(sc, scan)
	}
	rows := func(yield func(arrow.RecordBatch, error) bool) {
		for b, err := range scan {
			if given = true; !yield(b, err) {
				return
			}
		}
		if err := l.bad.written(ctx); err != nil {
			yield(nil, err)
		}
	}
	var s stoa.MergeResult
	if cmd.Name() == "merge" {
		s, err = c.Merge(ctx, sc, rows, stoa.MergeOptions{AppendOptions: o, Key: listed(l.key)})
	} else {
		s.AppendResult, err = c.Append(ctx, sc, rows, o)
		s.Bad = l.bad.rows
		err = l.bad.end(ctx, err, o.DryRun)
	}
	if given && err != nil {
		err = fault.OfRows(l.firstBad(ctx, c, t, spec, oo, o, err))
	}
	if s.Unchecked != "" && !l.unchecked {
		l.app.Detail("%s: %s", c.Place().Dir, s.Unchecked)
	}
	if err != nil {
		return err
	}
	return l.report(args[0], s, time.Since(began))
}

// report prints what was added.
func (l *loading) report(table string, s stoa.MergeResult, took time.Duration) (err error) {
	if s.Files == nil {
		s.Files = []string{} // none, and not: not known
	}
	switch output.ReportAltered(l.app, table, s.Altered); {
	case l.form == "json" && l.key != "":
		err = output.WriteSummary(l.app, s)
	case l.form == "json":
		err = output.WriteSummary(l.app, s.AppendResult)
	case l.key != "":
		l.app.Note("%s: %s %s, %s added", table, display.Count(s.Replaced, "row"), would(*l.dry, "replaced"),
			display.Count(s.Added, "row"))
	case *l.dry:
		l.app.Note("%s: %s would be added", table, display.Count(s.Rows, "row"))
	case s.Rows == 0 && s.Bad > 0:
		l.app.Note("%s: no rows: all %s are bad", table, display.Count(s.Bad, "row"))
	case s.Rows == 0:
		l.app.Note("%s: no rows: segment %s is empty, and marked for delete", table, s.Segment)
	default:
		l.app.Note("%s: segment %s, %s, %s, %s, %s", table, s.Segment, display.Count(s.Rows, "row"),
			display.BytesText(s.DataBytes+s.IndexBytes), display.Count(int64(len(s.Files)), "data file"),
			display.Seconds(took))
	}
	return err
}

// openFor opens sources to be loaded into a table. Text files say little about types: columns that are nested, binary,
// decimal or text in the table are read as such, because guessing might lose values or cannot recognize them. If bad
// asks for it, all columns are read as text, so that the values that do not fit their column are found later.
func openFor(a *cli.App, ctx context.Context, c *stoa.Changer, paths []string, o stoa.OpenOptions,
	bad *badRecords) (*stoa.Table, error) {
	t, o, err := openAlike(a, ctx, paths, o)
	if err != nil || !isGuessed(t, o) {
		return t, err
	}
	target, err := c.Open(ctx, stoa.OpenOptions{})
	if err != nil { // guessed types may change values
		return nil, errors.Join(err, t.Close())
	}
	defer target.Close()
	fields, other := slices.Clone(t.Schema().Fields()), false
	for i, f := range fields {
		k := slices.IndexFunc(target.Schema().Fields(),
			func(x arrow.Field) bool { return strings.EqualFold(x.Name, f.Name) })
		if k < 0 {
			continue
		}
		want := target.Schema().Field(k).Type
		if bad != nil && bad.asked() {
			want = bad.asText(f.Name, want)
		} else if !readsAs(want, f.Type) {
			continue
		}
		if !arrow.TypeEqual(want, f.Type) {
			fields[i].Type, fields[i].Nullable, other = want, true, true
		}
	}
	if !other {
		return t, nil
	}
	doc, err := output.JsonLine(schemafmt.SchemaDoc(arrow.NewSchema(fields, nil)))
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	o.Opts = withOption(o.Opts, "schema", string(doc))
	return source.OpenAll(a, ctx, paths, o)
}

// openAlike opens sources as one table, and returns with which options. The types guessed from one text can differ from
// those of another, because of a single value: then all columns are read as text.
func openAlike(a *cli.App, ctx context.Context, paths []string, o stoa.OpenOptions) (*stoa.Table, stoa.OpenOptions,
	error) {
	t, err := source.OpenAll(a, ctx, paths, o)
	if errors.Is(err, fault.Invalid) && o.Opts["schema"] == "" && o.Opts["types"] == "" {
		as := o
		as.Opts = withOption(o.Opts, "types", "string")
		if t, err := source.OpenAll(a, ctx, paths, as); err == nil {
			return t, as, nil
		}
	}
	return t, o, err
}

// isGuessed reports whether the types of all sources of a table are guessed from texts.
func isGuessed(t *stoa.Table, o stoa.OpenOptions) bool {
	return o.Opts["schema"] == "" && !slices.ContainsFunc(t.Sources(), func(s stoa.SourceInfo) bool {
		return s.Format != "csv" && s.Format != "tsv" && s.Format != "jsonl"
	})
}

// readsAs reports whether a text column that looks like type guess is parsed as t instead of being converted: a column
// of numbers with a NaN looks like text.
func readsAs(t, guess arrow.DataType) bool {
	switch t.ID() {
	case arrow.FLOAT32, arrow.FLOAT64:
		return guess.ID() == arrow.STRING
	case arrow.STRING, arrow.LARGE_STRING:
		return true
	}
	if binaryType(t) {
		return true
	}
	_, decimal := t.(arrow.DecimalType)
	return decimal || arrow.IsNested(t.ID())
}

func binaryType(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.FIXED_SIZE_BINARY:
		return true
	}
	return false
}
