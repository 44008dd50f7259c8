package look

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/source"
	"stoa/internal/sorted"
	"stoa/store"
)

var explainForms = []string{"text", "json"}

// explainDoc is the document of -f json. Unknown values are null.
type explainDoc struct {
	Filter string       `json:"filter"`
	Levels []explainRow `json:"levels"`
	Ran    *ExplainRan  `json:"ran,omitempty"`

	Convert  *explainConvert `json:"convert,omitempty"`  // --convert
	Requests *cli.Requests   `json:"requests,omitempty"` // to stores, if a source is an address
}

// explainConvert says whether convert would copy pages into a file of the same format, and if not, why.
type explainConvert struct {
	Copied bool   `json:"pages_copied"`
	Why    string `json:"why,omitempty"`
}

type explainRow struct {
	Level      string        `json:"level"`
	Column     string        `json:"column,omitempty"`
	Filter     bool          `json:"in_filter,omitempty"`
	Considered *int64        `json:"considered"`
	Read       *int64        `json:"read"`
	Skipped    []stoa.Reason `json:"skipped,omitempty"`
	Used       []stoa.Reason `json:"used,omitempty"`
	Bytes      *int64        `json:"bytes"`
	Total      *int64        `json:"of_bytes"`
}

// ExplainRan counts reads of files and their bytes (bytes read twice count twice): those of pages (null where a
// format's own reader fetches them), all those of the explanation and the scan, and earlier ones, which detected the
// format and opened the table. Distinct counts every byte once.
type ExplainRan struct {
	Rows      int64   `json:"rows"`
	PageReads *int64  `json:"page_reads"`
	PageBytes *int64  `json:"page_bytes"`
	ScanReads int64   `json:"scan_reads"`
	ScanBytes int64   `json:"scan_bytes"`
	OpenReads int64   `json:"open_reads"`
	OpenBytes int64   `json:"open_bytes"`
	Distinct  int64   `json:"distinct_bytes"`
	FileBytes *int64  `json:"file_bytes"`
	Seconds   float64 `json:"seconds"`
}

// explaining is one run of stoa explain.
type explaining struct {
	app              *cli.App
	src              source.SourceFlags
	sel              source.SelectFlags
	out              output.OutputFlags
	analyze, convert bool
}

func ExplainCmd(a *cli.App) *cobra.Command {
	e := explaining{app: a}
	cmd := &cobra.Command{
		Use:   "explain PATH...",
		Short: "Show what a scan reads, what it skips, and why",
		Long: `Show what a scan with this predicate and these columns would read, and what it would skip
and why, at each level: parts, row groups, rows, and the dictionaries and pages of each column. Only
metadata is read. With --analyze the scan runs, and the figures are those of the run.

With --analyze, pages of which no row passed the filter count as skipped, too, and for the pages of the
filter's columns it says where not every value was compared (dictionary codes, an inverted index). Each
level considers what the level before it left. Bytes are as stored; those of parts and row groups are
estimates.
With --convert it also says whether stoa convert to a file of the same format would copy the pages, or why
it would have to decode them.
The status is 3 if the table is known to be incomplete.`,
		Example: "  stoa explain block.cfile --where 'value > 3' --analyze\n  stoa explain store#sales.orders " +
			"--where \"day = date '2024-02-29'\"",
		Args: a.Paths,
		RunE: e.run,
	}
	e.sel.RegisterColumns(a, cmd, &e.src)
	e.sel.RegisterWhere(cmd)
	e.sel.RegisterParallel(cmd)
	e.sel.RegisterMemory(cmd)
	for _, name := range []string{"parallel", "memory"} {
		f := cmd.Flags().Lookup(name)
		f.Usage = "with --analyze: " + f.Usage
	}
	cmd.Flags().BoolVar(&e.convert, "convert", false,
		"also say whether stoa convert to the same format would copy pages")
	cmd.Flags().BoolVar(&e.analyze, "analyze", false, "run the scan, and show what it did")
	e.out.Register(cmd, explainForms, "default text")
	e.src.Register(a, cmd)
	return cli.First(cmd, "where", "columns", "analyze")
}

func (e *explaining) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	if err := e.out.Check(explainForms); err != nil {
		return err
	}
	spec, err := e.sel.Spec()
	if err != nil {
		return err
	}
	o, err := e.src.Options(ctx, e.app, args)
	if err != nil {
		return err
	}
	counter := store.NewCounter(o.Tree)
	o.Tree = counter
	t, err := source.OpenAll(e.app, ctx, args, o)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := cli.CheckOutput(e.out.File, t.Sources()); err != nil {
		return err
	}
	if spec.Columns, err = source.ExpandColumns(t.Schema().Fields(), spec.Columns); err != nil {
		return err
	}
	opened := len(counter.Reads())
	x, err := t.Explain(ctx, spec, e.analyze)
	if err != nil {
		return err
	}
	doc := docOfExplanation(x)
	if e.convert {
		if doc.Convert, err = convertOf(ctx, t, spec); err != nil {
			return err
		}
	}
	if doc.Ran != nil {
		doc.Ran.Count(counter.Reads(), opened)
		doc.Ran.FileBytes = reading.Known(sizeOf(e.app, ctx, t.Sources()))
	}
	doc.Requests = e.app.Requests()
	err = output.PutDoc(e.app, ctx, &e.out, func(w io.Writer) error {
		if e.out.Form == "json" {
			return output.WriteLines(w, []explainDoc{doc})
		}
		return writeExplanation(w, doc, output.StyleOf(e.app, &e.out))
	})
	return reading.NoticedIn(e.app, t.Findings(), err)
}

// convertOf reports whether pages would be copied.
func convertOf(ctx context.Context, t *stoa.Table, spec stoa.ScanSpec) (*explainConvert, error) {
	why, err := t.Copies(ctx, spec, "out", stoa.CreateOptions{To: t.Sources()[0].Format})
	return &explainConvert{Copied: why == "", Why: why}, err
}

// sizeOf returns the total size of the sources; -1 if one is not known.
func sizeOf(a *cli.App, ctx context.Context, sources []stoa.SourceInfo) (sum int64) {
	for _, s := range sources {
		n := a.Size(ctx, s.Name)
		if n < 0 {
			return -1
		}
		sum += n
	}
	return sum
}

// DocOfExplanation returns the document of an explanation, for JSON.
func DocOfExplanation(x *stoa.Explanation) any { return docOfExplanation(x) }

func docOfExplanation(x *stoa.Explanation) explainDoc {
	d := explainDoc{Filter: x.Filter}
	for _, l := range x.Levels {
		row := explainRow{Level: string(l.Level), Column: l.Column, Filter: l.Filter,
			Considered: reading.Known(l.Considered), Read: reading.Known(l.Read), Skipped: l.Skipped, Used: l.Used}
		if l.Level != "rows" {
			row.Bytes, row.Total = reading.Known(l.Bytes), reading.Known(l.Total)
		}
		d.Levels = append(d.Levels, row)
	}
	if r := x.Ran; r != nil {
		d.Ran = &ExplainRan{Rows: r.Rows, Seconds: r.Elapsed.Seconds(), PageReads: reading.Known(r.Reads),
			PageBytes: reading.Known(r.Bytes)}
	}
	return d
}

// Count adds the reads. The first opened ones happened before the explanation.
func (x *ExplainRan) Count(reads []store.Read, opened int) {
	for i, r := range reads {
		if i < opened {
			x.OpenReads++
			x.OpenBytes += int64(r.Got)
		} else {
			x.ScanReads++
			x.ScanBytes += int64(r.Got)
		}
	}
	sorted.By(reads, func(a, b store.Read) int {
		return cmp.Or(strings.Compare(a.Name, b.Name),
			cmp.Compare(a.Off, b.Off))
	})
	name, end := "", int64(0)
	for _, r := range reads {
		if r.Name != name {
			name, end = r.Name, 0
		}
		if stop := r.Off + int64(r.Got); stop > end {
			x.Distinct += stop - max(end, r.Off)
			end = stop
		}
	}
}

func writeExplanation(w io.Writer, d explainDoc, style display.TableStyle) error {
	if d.Filter != "" {
		if _, err := fmt.Fprintf(w, "where %s\n\n", display.OneLine(d.Filter)); err != nil {
			return err
		}
	}
	r := &output.Report{Cols: []output.ReportColumn{{Name: "level"}, {Name: "column"},
		{Name: "considered", Right: true}, {Name: "read", Right: true},
		{Name: "bytes", Right: true}, {Name: "of", Right: true}, {Name: "skipped"}}}
	used := slices.ContainsFunc(d.Levels, func(l explainRow) bool { return len(l.Used) > 0 })
	if used {
		r.Cols = append(r.Cols, output.ReportColumn{Name: "filtered by"})
	}
	for _, l := range d.Levels {
		column := l.Column
		if l.Filter {
			column += " (filter)"
		}
		cells := []string{l.Level, column, orEmpty(l.Considered, display.Thousands),
			orEmpty(l.Read, display.Thousands),
			orEmpty(l.Bytes, display.BytesText), orEmpty(l.Total, display.BytesText), reasonsText(l.Skipped)}
		if used {
			cells = append(cells, reasonsText(l.Used))
		}
		r.Add(nil, cells...)
	}
	if err := r.WriteTable(w, style); err != nil {
		return err
	}
	if c := d.Convert; c != nil {
		text := "\nconvert: pages copied\n"
		if !c.Copied {
			text = "\nconvert: pages are decoded: " + display.OneLine(c.Why) + "\n"
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	if d.Ran != nil {
		if err := d.Ran.write(w); err != nil {
			return err
		}
	}
	if q := d.Requests; q != nil {
		_, err := fmt.Fprintf(w, "\nrequests to stores: list %d, head %d, get %d, of them repeated %d; "+
			"%s in %.3f s of waiting\n", q.List, q.Head, q.Get, q.Repeated, display.BytesText(q.Bytes), q.Waited)
		return err
	}
	return nil
}

func (x *ExplainRan) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s came out in %.3f s; ", display.Count(x.Rows, "row"), x.Seconds)
	if x.PageReads != nil {
		fmt.Fprintf(&b, "%s of pages in %s, with dictionaries and metadata ", display.BytesText(*x.PageBytes),
			display.Count(*x.PageReads, "read"))
	}
	fmt.Fprintf(&b, "%s in %s; before, detecting the format and opening took %s in %s; ",
		display.BytesText(x.ScanBytes), display.Count(x.ScanReads, "read"),
		display.BytesText(x.OpenBytes), display.Count(x.OpenReads, "read"))
	fmt.Fprintf(&b, "%s was read at least once", display.BytesText(x.Distinct))
	if x.FileBytes != nil {
		fmt.Fprintf(&b, ", of %s", display.BytesText(*x.FileBytes))
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

func reasonsText(all []stoa.Reason) string {
	var out []string
	for _, s := range all {
		out = append(out, fmt.Sprintf("%s: %s", s.Why, display.Thousands(s.N)))
	}
	return strings.Join(out, "; ")
}

func orEmpty(n *int64, text func(int64) string) string {
	if n == nil {
		return ""
	}
	return text(*n)
}
