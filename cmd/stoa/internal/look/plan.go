package look

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/schemafmt"
	"stoa/cmd/stoa/internal/source"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/internal/arrowschema"
	"stoa/store"
	"stoa/store/remote"
)

// planVersion is the version of a plan's first and last line. Splits have one of their own, stoa.SplitVersion.
const planVersion = 2

// planHead is the first line of a plan.
type planHead struct {
	Version int                  `json:"stoa_plan"`
	Plan    string               `json:"plan"`
	Schema  schemafmt.SchemaJSON `json:"schema"` // of the rows
	Arrow   []byte               `json:"arrow"`  // the same as a schema message of Arrow IPC
	Buckets *planBuckets         `json:"buckets,omitempty"`
	Order   []string             `json:"order,omitempty"` // of the rows of each split, with --in-order
}

// planBuckets says how values of a table's columns determine the buckets of its rows.
type planBuckets struct {
	Count int      `json:"count"`
	By    []string `json:"by"`
	Hash  string   `json:"hash"` // of tables with the same one, and as many buckets, equal values are in equal buckets
}

// planEnd is the last line of a plan: a plan without it is incomplete.
type planEnd struct {
	End      bool                 `json:"end"`
	Plan     string               `json:"plan"`
	Splits   int                  `json:"splits"`
	Rows     int64                `json:"rows"` // of the splits, before any filter; -1: not known
	Bytes    int64                `json:"bytes"`
	Findings []reading.FindingDoc `json:"findings"` // what is known of the table without reading its rows
}

func PlanCmd(a *cli.App) *cobra.Command {
	var src source.SourceFlags
	var sel source.SelectFlags
	var out output.OutputFlags
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan PATH...",
		Short: "Divide a scan into splits that other processes can read",
		Long: `Divide a scan into splits, for a distributed engine. The first line of output has the schema of
the rows, {"stoa_plan":2,…}. Each other line is a split, in JSON: all that another process needs to read it
with stoa scan, except the data, which must be at the same path there. The last line is {"end":true,…}
with the number of splits; a plan without it was cut off.

The rows of the splits, one after the other, are those of the scan. The status is 3 if the plan was
written and the table is known to be incomplete.`,
		Example: `  stoa plan table/ --target-size 256MB > splits.jsonl
  stoa plan kudu#d_major --columns id,b -o splits.jsonl
  stoa plan table/ --listing 2/16 > second.jsonl`,
		Args: a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runPlan(cmd, a, args, &src, &sel, &out, &f)
		},
	}
	sel.RegisterColumns(a, cmd, &src)
	sel.RegisterWhere(cmd)
	cmd.Flags().StringVar(&f.size, "target-size", "256MB",
		"about how many stored bytes a split has: `SIZE`, such as 64MB")
	cmd.Flags().StringVarP(&out.File, "output", "o", "",
		"write to `FILE`, which appears only when it is complete (- is standard output)")
	cmd.Flags().StringVar(&f.listing, "listing", "",
		"plan the share `N/M` of the files, or of the parts of a single table: M processes plan what one would")
	cmd.Flags().BoolVar(&f.apart, "by-partition", false, "keep rows with different values of partition columns, "+
		"and of different buckets, in different splits")
	cmd.Flags().StringVar(&f.keep, "keep", "", "keep plans in the directory `DIR`, and print one from there while "+
		"no file of its source has changed")
	cmd.Flags().BoolVar(&f.sorted, "in-order", false, "keep rows of different tablets or files in different splits, "+
		"so that those of each are in the order of the table's key, if it has one")
	cmd.MarkFlagsMutuallyExclusive("in-order", "unordered")
	src.Register(a, cmd)
	return cli.First(cmd, "target-size", "columns", "where")
}

type planFlags struct {
	size, listing, keep string
	apart, sorted       bool
}

// share parses --listing.
func (f *planFlags) share() (s stoa.Share, err error) {
	if f.listing == "" {
		return s, nil
	}
	n, of, ok := strings.Cut(f.listing, "/")
	if s.N, err = strconv.Atoi(n); err == nil {
		s.Of, err = strconv.Atoi(of)
	}
	if s.N--; !ok || err != nil || s.N < 0 || s.N >= s.Of {
		return s, cli.WrongUse("--listing %s: expected N/M with N from 1 to M, such as 2/16", f.listing)
	}
	return s, nil
}

// runPlan writes the splits of a table.
func runPlan(cmd *cobra.Command, a *cli.App, args []string, src *source.SourceFlags, sel *source.SelectFlags,
	out *output.OutputFlags, f *planFlags) error {
	ctx := cmd.Context()
	spec, err := sel.Spec()
	if err != nil {
		return err
	}
	o := stoa.PlanOptions{Apart: f.apart, Sorted: f.sorted}
	if o.Target, err = cli.ParseSize("--target-size", f.size); err != nil {
		return err
	}
	if src.Share, err = f.share(); err != nil {
		return err
	}
	if args, err = absolute(args); err != nil {
		return err
	}
	src.Planned = true
	kept := keptPlan(cmd, f.keep, args)
	if text, ok := kept.read(); ok {
		a.Reads(args...)
		return cli.Whole(output.PutWhole(a, ctx, out, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		}))
	}
	t, err := src.Open(ctx, a, args)
	if err != nil {
		return cli.Whole(err)
	}
	defer t.Close()
	if err := cli.CheckOutput(out.File, t.Sources()); err != nil {
		return err
	}
	if spec.Columns, err = source.ExpandColumns(t.Schema().Fields(), spec.Columns); err != nil {
		return err
	}
	err = output.PutWhole(a, ctx, out, func(w io.Writer) error {
		w = kept.tee(w)
		return writePlan(ctx, w, t, spec, o)
	})
	if err == nil && len(t.Findings()) == 0 {
		kept.write()
	}
	return cli.Whole(reading.NoticedIn(a, t.Findings(), cli.AllRead(err)))
}

// writePlan writes the lines of a plan.
func writePlan(ctx context.Context, w io.Writer, t *stoa.Table, spec stoa.ScanSpec, o stoa.PlanOptions) error {
	enc := json.NewEncoder(w)
	head, err := headOf(t, spec)
	if o.Sorted {
		head.Order = t.Layout().Order
	}
	if err == nil {
		err = enc.Encode(head)
	}
	if err != nil {
		return err
	}
	end := planEnd{End: true, Plan: head.Plan, Findings: []reading.FindingDoc{}}
	for s, err := range t.PlanBy(ctx, spec, o) {
		if err != nil {
			return err
		}
		end.Splits++
		end.Bytes += s.Bytes
		if end.Rows >= 0 && s.Rows >= 0 {
			end.Rows += s.Rows
		} else {
			end.Rows = -1
		}
		if err := enc.Encode(s); err != nil {
			return err
		}
	}
	for _, f := range t.Findings() {
		end.Findings = append(end.Findings, reading.DocOfFinding(f))
	}
	return enc.Encode(end)
}

func headOf(t *stoa.Table, spec stoa.ScanSpec) (planHead, error) {
	sc, err := t.ScanSchema(spec)
	if err != nil {
		return planHead{}, err
	}
	message, err := arrowschema.Encode(sc)
	head := planHead{Version: planVersion, Plan: t.PlanName(spec), Schema: schemafmt.SchemaDoc(sc), Arrow: message}
	if l := t.Layout(); l.BucketHash != "" {
		head.Buckets = &planBuckets{l.Buckets, l.BucketBy, l.BucketHash}
	}
	return head, err
}

// absolute makes paths independent of the working directory: a split may be read in another directory, and by another
// process, for which this one's standard input and pipes do not exist.
func absolute(args []string) ([]string, error) {
	out := slices.Clone(args)
	for i, arg := range args {
		place := cli.WithoutTable(arg)
		if arg == cli.Dash || cli.IsPipe(place) {
			return nil, &cli.UseError{Message: "a plan of " + arg +
				" could be read by nobody: what comes through a pipe is not there for others",
				Hint: "write it to a file, and plan that; stoa cat reads a pipe"}
		}
		file, mark := place, ""
		if _, err := os.Lstat(place); err != nil {
			if rest, ok := strings.CutPrefix(place, store.RootsMark); ok {
				file, mark = rest, store.RootsMark
			}
		}
		if remote.Is(file) {
			continue
		}
		if strings.HasSuffix(file, "/") { // Abs would make the name that of a file
			if _, err := os.Stat(file); err != nil {
				return nil, err
			}
		}
		full, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		out[i] = mark + full + arg[len(place):]
	}
	return out, nil
}

func ScanCmd(a *cli.App) *cobra.Command {
	r := reading.Reading{}
	var split, splits string
	var work bool
	cmd := &cobra.Command{
		Use:   "scan --split SPLIT",
		Short: "Read a split that stoa plan made",
		Long: `Read a split that stoa plan made, as an Arrow stream. SPLIT is the JSON itself, a FILE that
has it, or - for standard input. A stream without an end mark was cut off, and its rows are not all.

The status is 0 if the whole split was written, with the end mark. It is 3 if the end mark was written,
but rows are known to be missing: they were skipped (--damaged), or the table is incomplete. With any
other status the stream is empty or has no end mark: 1 for damage, a file that is gone or has changed
since it was planned, and whatever else cannot be read; 2 for what is not a split of this version, and for
other wrong use.

With --splits - one process reads split after split, a line of standard input each. It answers each
with its stream, in frames, and a line with the split's own status: docs/splits.md.`,
		Example: `  stoa scan --split "$(sed -n 2p splits.jsonl)" | wc -l
  stoa scan --split split.json -o part.parquet
  grep stoa_split splits.jsonl | stoa scan --splits - | wc -c`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &cli.UseError{Message: "scan takes a split, not a path: " + args[0],
					Hint: "--split SPLIT; stoa plan makes splits, stoa cat reads all"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if splits != "" && splits != cli.Dash {
				return cli.WrongUse("--splits: only - is possible, standard input")
			}
			if splits != "" {
				return runWorker(cmd, a, &r)
			}
			return runScan(cmd, a, &r, split, work)
		},
	}
	cmd.Flags().StringVar(&split, "split", "", "the `SPLIT` to read: JSON, a file, or -")
	cmd.Flags().StringVar(&splits, "splits", "", "-: read split after split, a line of standard input each, and "+
		"answer each with its stream, in frames, and a line of JSON")
	cmd.Flags().BoolVar(&work, "work", false, "with --split: print on standard error, as a line of JSON, how many "+
		"pages and bytes were read, and how many pages skipped")
	cmd.MarkFlagsOneRequired("split", "splits")
	cmd.MarkFlagsMutuallyExclusive("split", "splits")
	cmd.MarkFlagsMutuallyExclusive("work", "splits")
	r.RegisterParallel(cmd)
	r.RegisterMemory(cmd)
	r.OutputFlags.Register(cmd, output.RowForms, "default: what the extension of -o says, else arrow")
	r.DamageFlags.Register(cmd, "fail")
	return cli.First(cmd, "split", "output", "format")
}

// runScan writes the rows of a split.
func runScan(cmd *cobra.Command, a *cli.App, r *reading.Reading, split string, work bool) error {
	ctx := cmd.Context()
	if r.Form == "" && !r.ToFile() {
		r.Form = "arrow"
	}
	form, err := r.RowForm(a)
	if err != nil {
		return err
	}
	spec, err := r.Spec()
	if err != nil {
		return err
	}
	s, err := readSplit(a, ctx, split)
	if err != nil {
		return err
	}
	t, err := openSplit(ctx, a, s)
	if err != nil {
		return cli.Whole(err)
	}
	defer t.Close()
	for _, src := range s.Sources {
		a.Reads(src.URI)
	}
	if err := a.CheckOutputs(nil, r.File, r.Manifest); err != nil {
		return cli.Whole(err)
	}
	sc, err := t.Schema()
	if err != nil {
		return cli.Whole(err)
	}
	if work {
		spec.Work = &stoa.Work{}
	}
	altered, err := reading.WriteRows(a, ctx, &r.OutputFlags, form, sc, t.Scan(ctx, spec))
	if work {
		err = cmp.Or(err, json.NewEncoder(a.Stderr).Encode(workOf(a, spec.Work, 0)))
	}
	noticed := append(t.Findings(), altered...)
	return cli.Whole(r.DamageFlags.Report(ctx, a, []string{"the split"}, noticed, cli.AllRead(err)))
}

// readSplit reads and parses a split.
func readSplit(a *cli.App, ctx context.Context, arg string) (s stoa.Split, err error) {
	text := []byte(arg)
	switch {
	case arg == cli.Dash:
		text, err = io.ReadAll(io.LimitReader(a.In, 1<<28))
	case !strings.HasPrefix(strings.TrimSpace(arg), "{"):
		a.Reads(arg)
		text, err = a.ReadFile(ctx, arg)
	}
	if err != nil {
		return s, err
	}
	return parseSplit(text)
}

func parseSplit(text []byte) (s stoa.Split, err error) {
	if err := json.Unmarshal(text, &s); err != nil {
		return s, cli.WrongUse("--split: %v", err)
	}
	if s.Version == 0 {
		return s, &cli.UseError{Message: "--split: this is not a split",
			Hint: "a split is a line that stoa plan prints (neither the first nor the last)"}
	}
	return s, nil
}
