package look

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/ls"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/source"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/content"
	"stoa/internal/seal"
	"stoa/region"
	"stoa/store"
	"stoa/store/remote"
)

func SealCmd(a *cli.App) *cobra.Command {
	var src source.SourceFlags
	var out, parity, form string
	var noRows bool
	cmd := &cobra.Command{
		Use:   "seal PATH... -o FILE.seal",
		Short: "Write checksums of files, and parity, to a sidecar",
		Long: `Write a sidecar file by which later changes of files are found and located, whatever the
format of the files: a checksum of every 64 KiB, and for every table its schema, its number of rows and
checksums of its values. stoa verify --seal FILE.seal PATH... compares.

With --parity 5%, 5% of the blocks can be restored, wherever in about 100 MiB the damage is: stoa recover
--seal FILE.seal PATH... -o OUT. Directories are sealed with everything below them; symbolic links and
pipes are listed, but neither followed nor read. The same files give the same seal, wherever they are.`,
		Example: `  stoa seal kudu -o kudu.seal --parity 5%
  stoa seal block.cfile block.parquet -o blocks.seal --no-rows`,
		Args: cli.Wants(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(output.SummaryForms, form) {
				return &cli.UseError{Message: "-f " + form + " is not a form of the summary",
					Hint: "the forms are text and json"}
			}
			if out == "" || out == cli.Dash {
				return &cli.UseError{Message: "-o says where to write the seal; it is missing",
					Hint: "for example -o " + filepath.Base(cli.ShownAddress(args[0])) + ".seal"}
			}
			if err := cli.OnceDash(args); err != nil {
				return err
			}
			p, err := parsePercent(parity)
			if err != nil {
				return err
			}
			o, err := src.Options(cmd.Context(), a, args)
			if err != nil {
				return err
			}
			return sealPaths(a, cmd.Context(), args, out, form, p, !noRows, o)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&out, "output", "o", "", "write the seal to `FILE` (required)")
	fl.StringVar(&parity, "parity", "0", "add parity, by which `N%` of the blocks can be restored (0 to 100)")
	fl.StringVarP(&form, "format", "f", "text",
		"say what was written as `FORM`: text, a line on standard error; json, an object on standard output")
	cli.Complete(cmd, "format", func() []string { return output.SummaryForms })
	fl.BoolVar(&noRows, "no-rows", false, "seal only the files, and read no tables")
	src.Register(a, cmd)
	return cli.First(cmd, "output", "parity", "no-rows")
}

func parsePercent(s string) (float64, error) {
	n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(s), "%"), 64)
	if err != nil || !(n >= 0 && n <= 100) {
		return 0, &cli.UseError{Message: "--parity " + s + " is not a number from 0 to 100",
			Hint: "for example --parity 5%"}
	}
	return n, nil
}

// sealedDoc is what seal -f json prints.
type sealedDoc struct {
	Output    string     `json:"output"`
	SealBytes int64      `json:"seal_bytes"`
	Files     int        `json:"files"`
	Bytes     int64      `json:"bytes"`
	Tables    int        `json:"tables"`
	Rows      int64      `json:"rows"`
	NotRead   []string   `json:"not_read"` // what is no file: named in the seal only
	Unsealed  []unsealed `json:"unsealed"`
	Seconds   float64    `json:"seconds"`
}

// unsealed is a table whose rows could not be read.
type unsealed struct {
	Table   string `json:"table"`
	Problem string `json:"problem"`
}

// sealPaths writes a seal of places.
func sealPaths(a *cli.App, ctx context.Context, paths []string, out, form string, parity float64, rows bool,
	o stoa.OpenOptions) error {
	began := time.Now()
	a.Reads(paths...)
	if err := a.CheckOutputs(nil, out); err != nil {
		return err
	}
	places := a.Sealed(paths)
	files, err := places.Walk(ctx)
	if err != nil {
		return err
	}
	so := seal.Options{Parity: parity}
	if rows {
		if so.Tables, err = sealTables(a, ctx, paths, o); err != nil {
			return err
		}
	}
	p, err := a.Create(ctx, out)
	if err != nil {
		return err
	}
	defer p.Abort(ctx)
	s, err := seal.Write(ctx, p, places, files, so)
	if err == nil {
		err = a.RemoteFailure() // rows that a store did not give are not sealed
	}
	if err == nil {
		err = p.Commit(ctx)
	}
	if err != nil {
		return err
	}
	doc := sealedDoc{Output: out, SealBytes: s.Size, Files: s.Files, Bytes: s.Bytes, Tables: len(so.Tables),
		NotRead: append([]string{}, s.Special...), Unsealed: []unsealed{}}
	for _, t := range so.Tables {
		if doc.Rows += t.Rows; t.Problem != "" {
			doc.Unsealed = append(doc.Unsealed, unsealed{paths[t.Root] + t.Table, t.Problem})
		}
	}
	doc.Seconds = time.Since(began).Seconds()
	return doc.report(a, form)
}

// report says what was written.
func (d *sealedDoc) report(a *cli.App, form string) error {
	if form == "json" {
		if err := output.WriteSummary(a, d); err != nil {
			return err
		}
	} else {
		for _, name := range d.NotRead {
			a.Note("%s: no file; it is named in the seal, and was not read", name)
		}
		for _, t := range d.Unsealed {
			a.Note("%s: its rows are not sealed: %s", t.Table, t.Problem)
		}
		a.Note("%s: %s, %s of %s, %s, %s, %s", d.Output, display.BytesText(d.SealBytes),
			display.Count(int64(d.Files), "file"), display.BytesText(d.Bytes), display.Count(int64(d.Tables), "table"),
			display.Count(d.Rows, "row"), display.Seconds(time.Duration(d.Seconds*float64(time.Second))))
	}
	if len(d.Unsealed) > 0 {
		return cli.ErrDamage
	}
	return nil
}

// sealTables computes the checksums of the tables of places. Files that are not tables have none.
func sealTables(a *cli.App, ctx context.Context, paths []string, o stoa.OpenOptions) (out []seal.Table, err error) {
	for i, p := range paths {
		for e, err := range stoa.List(ctx, p, o) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if fault.OverBudget(err) {
				return nil, err
			}
			name := strings.TrimPrefix(e.Place, strings.TrimSuffix(p, "/"))
			if unreadable(err) {
				out = append(out, seal.Table{Root: i, Table: name, Problem: ls.Problem(err)})
				continue
			}
			if err != nil { // what is not a table is sealed as bytes
				a.Detail("%s: %v", p, err)
				continue
			}
			if e.Table != "" {
				name += "#" + e.Table
			}
			uri, by := stoa.Named(e, o)
			t, err := sealTable(a, ctx, uri, by)
			t.Root, t.Table = i, name
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			switch {
			case fault.OverBudget(err):
				return nil, err
			case unreadable(err):
				t.Problem = ls.Problem(err)
			case err != nil: // bloom files, logs, and what needs options
				a.Detail("%s%s: %v", p, name, err)
				continue
			}
			out = append(out, t)
		}
	}
	return out, nil
}

// unreadable reports whether err means that a table, or a part of one, cannot be read, by the rules of ls: damage, and
// access that the operating system refuses. It returns false for what is not a table, or is of an unsupported kind.
func unreadable(err error) bool {
	p := new(fs.PathError)
	return errors.Is(err, fault.Corrupt) || errors.As(err, &p) || store.Failing(err)
}

// sealTable reads a table.
func sealTable(a *cli.App, ctx context.Context, name string, o stoa.OpenOptions) (out seal.Table, err error) {
	t, err := stoa.Open(ctx, name, o)
	if err != nil {
		return out, err
	}
	defer t.Close()
	sources := t.Sources()
	if len(sources) > 0 {
		out.Format = sources[0].Format
	}
	sums := content.Same(t.Schema()).Summers(0, runtime.NumCPU())
	spec := stoa.ScanSpec{Alloc: cli.Pool, Unordered: true, Parallel: len(sums)}
	if err := t.Each(ctx, spec, sums.Add); err != nil {
		return out, err
	}
	sum := sums.Sum()
	out.Rows, out.Sum = sum.Rows, sum.String()
	for i, c := range sum.Columns {
		out.Columns = append(out.Columns,
			seal.TableColumn{Name: c.Name, Type: display.TypeWord(t.Schema().Field(i).Type), Nulls: c.Nulls,
				Sum: fmt.Sprintf("%016x", c.Hash)})
	}
	return out, nil
}

// openSeal opens the seal at name, which may be an address.
func openSeal(a *cli.App, ctx context.Context, name string) (*seal.Seal, io.Closer, error) {
	if remote.Is(name) {
		if _, err := a.Stat(ctx, name); err != nil {
			return nil, nil, err
		}
		src, err := a.Remote().Open(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		s, err := sealIn(name, store.ReaderAt(ctx, src), src.Size())
		if err != nil {
			return nil, nil, errors.Join(err, src.Close())
		}
		return s, src, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", name)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	s, err := sealIn(name, f, st.Size())
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return s, f, nil
}

func sealIn(name string, in io.ReaderAt, size int64) (*seal.Seal, error) {
	s, err := seal.Open(in, size)
	if err != nil && (!remote.Is(name) || !store.Failing(err)) {
		err = fault.Corruptf(fault.Span{Object: name, Len: size}, "", "%v", err)
	}
	return s, err
}

// verifySeal adds the differences from a seal to a report.
func verifySeal(a *cli.App, ctx context.Context, name string, paths []string, o stoa.OpenOptions, form string,
	w io.Writer, doc *VerifyDoc) error {
	s, f, err := openSeal(a, ctx, name)
	if err != nil {
		return err
	}
	defer f.Close()
	if len(paths) != len(s.Roots()) {
		return &cli.UseError{Message: fmt.Sprintf("%s is of %s (%s), and %d are given", name,
			display.Count(int64(len(s.Roots())), "place"), strings.Join(s.Roots(), ", "), len(paths)),
			Hint: "give the places in the order in which they were sealed"}
	}
	for _, p := range s.Problems {
		found := region.Finding{Code: "seal.damaged", Severity: region.Error,
			At: fault.Span{Object: name, Off: p.Off, Len: p.Len}, Part: name, Rows: [2]int64{-1, -1}, Message: p.Reason}
		if err := doc.add(found, form, w); err != nil {
			return err
		}
	}
	var failed error
	same := true
	err = s.Verify(ctx, a.Sealed(paths), func(d seal.Difference) {
		same = false
		if failed == nil {
			failed = doc.add(findingOfSeal(d), form, w)
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	for _, t := range s.Tables() {
		if t.Root < 0 || t.Root >= len(paths) {
			continue
		}
		if t.Problem != "" {
			if err := doc.add(unsound(paths[t.Root]+t.Table, t.Problem), form, w); err != nil {
				return err
			}
			continue
		}
		if same && o.Depth != format.Deep {
			continue
		}
		if why := sealedRows(a, ctx, t, strings.TrimSuffix(paths[t.Root], "/")+t.Table, o); why != "" {
			place := paths[t.Root] + t.Table
			found := region.Finding{Code: "seal.rows", Severity: region.Error, At: fault.Span{Object: place},
				Part: place, Rows: [2]int64{-1, -1}, Message: why}
			if err := doc.add(found, form, w); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// unsound is the finding about a table that could not be read when it was sealed.
func unsound(place, problem string) region.Finding {
	return region.Finding{Code: "seal.unsound", Severity: region.Note, At: fault.Span{Object: place}, Part: place,
		Rows: [2]int64{-1, -1}, Message: "it could not be read when it was sealed: " + problem}
}

// sealedRows describes how a table differs from the sealed one; "" if it does not.
func sealedRows(a *cli.App, ctx context.Context, t seal.Table, name string, o stoa.OpenOptions) string {
	got, err := sealTable(a, ctx, name, o)
	if err != nil {
		return fmt.Sprintf("%s were sealed, and it cannot be read: %s", display.Count(t.Rows, "row"), ls.Problem(err))
	}
	if got.Rows == t.Rows && got.Sum == t.Sum && len(got.Columns) == len(t.Columns) {
		return ""
	}
	var names []string
	for i, c := range t.Columns {
		if i >= len(got.Columns) || got.Columns[i] != c {
			names = append(names, c.Name)
		}
	}
	text := fmt.Sprintf("%s were sealed, %s are there", display.Count(t.Rows, "row"), display.Thousands(got.Rows))
	if len(names) > 0 {
		return text + "; other values in " + strings.Join(names, ", ")
	}
	return text + "; every column has the same values, but not in the same rows"
}

func findingOfSeal(d seal.Difference) region.Finding {
	f := region.Finding{Code: "seal." + d.What, Severity: region.Error,
		At: fault.Span{Object: d.File, Off: d.Off, Len: d.Len}, Part: d.File, Rows: [2]int64{-1, -1},
		Message: d.Message}
	usual := map[string]string{seal.Changed: "these bytes are not what was sealed",
		seal.Missing: "it was sealed, and is not there", seal.Added: "it was not sealed"}
	if text := usual[d.What]; text != "" {
		f.Message = strings.TrimSuffix(text+": "+d.Message, ": ")
	}
	switch d.What {
	case seal.Added:
		f.Severity, f.At = region.Warning, fault.Span{Object: d.File}
	case seal.Missing, seal.Kind, seal.Swapped, seal.Other:
		f.At = fault.Span{Object: d.File}
	}
	return f
}

// repairedDoc is what recover --seal -f json prints.
type repairedDoc struct {
	Output  string   `json:"output"`
	Files   int      `json:"files"`
	Bytes   int64    `json:"bytes"`
	Whole   int      `json:"whole"`  // files that were written unchanged
	Blocks  int64    `json:"blocks"` // of 64 KiB, restored from parity
	LeftOut []string `json:"left_out"`
	Seconds float64  `json:"seconds"`
}

// RepairBySeal writes the original contents of sealed files, and says so in the form that -f names.
func RepairBySeal(a *cli.App, ctx context.Context, name string, paths []string, out, form string) error {
	began := time.Now()
	if out == "" || out == cli.Dash {
		return &cli.UseError{Message: "-o says where to write; it is missing",
			Hint: "with --seal it is a directory, or a file if one file was sealed"}
	}
	a.Reads(append([]string{name}, paths...)...)
	if err := a.CheckOutputs(nil, out); err != nil {
		return err
	}
	if err := a.Enter(ctx, paths); err != nil {
		return err
	}
	s, f, err := openSeal(a, ctx, name)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range s.Problems {
		a.Note("%s[%d+%d]: the seal is damaged: %s", name, p.Off, p.Len, p.Reason)
	}
	var sink store.Sink = store.Local{}.Sink(out, nil)
	if remote.Is(out) {
		if sink, _, err = a.Sink(ctx, out); err != nil {
			return err
		}
	}
	m, err := s.Repair(ctx, a.Sealed(paths), store.Strict(sink))
	if err != nil {
		return err
	}
	for _, l := range m.Left {
		a.Note("%s: no file; it is left out", l)
	}
	if form == "json" {
		return output.WriteSummary(a, repairedDoc{Output: out, Files: m.Files, Bytes: m.Bytes, Whole: m.Whole,
			Blocks: m.Blocks, LeftOut: append([]string{}, m.Left...), Seconds: time.Since(began).Seconds()})
	}
	a.Note("%s: %s, %s, all as sealed: %d intact, %s restored, %s", out, display.Count(int64(m.Files), "file"),
		display.BytesText(m.Bytes), m.Whole, display.Count(m.Blocks, "block"), display.Seconds(time.Since(began)))
	return nil
}
