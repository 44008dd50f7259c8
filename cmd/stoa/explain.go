package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/store"
)

var explainForms = []string{"text", "json"}

// explainDoc is what -f json has. What is not known is null.
type explainDoc struct {
	Filter string       `json:"filter"`
	Levels []explainRow `json:"levels"`
	Ran    *explainRan  `json:"ran,omitempty"`
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

// explainRan counts reads of files and their bytes (what is read twice counts twice): of pages (null where a
// format's own reader fetches them), all of the explanation and the scan, and those before, which told the
// format and opened the table. Distinct counts every byte once.
type explainRan struct {
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

func (a *app) explainCmd() *cobra.Command {
	var src sourceFlags
	var sel selectFlags
	var out outputFlags
	var analyze bool
	cmd := &cobra.Command{
		Use:   "explain PATH...",
		Short: "Show what a scan reads, what it passes over, and why",
		Long: `Show, for a predicate and columns, what a scan considers at each level (parts, row groups, rows, the dictionaries and pages of each column), how much
of it is read, and by what means the rest is passed over. Only metadata is read. With --analyze the scan is run, and what is told is what happened:
 pages of which no row passed the filter are then passed over, too, and of the filter's pages it is told where not every value was compared
 (codes of a dictionary, an inverted index). A level counts what the level before left; bytes are as stored, of parts and
 row groups they are estimates. The status is 3 if the table is known not to be whole.`,
		Example: "  stoa explain block.cfile --where 'value > 3' --analyze\n  stoa explain store#sales.orders " +
			"--where \"day = date '2024-02-29'\"",
		Args: a.paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if err := out.check(explainForms); err != nil {
				return err
			}
			spec, err := sel.spec()
			if err != nil {
				return err
			}
			o, err := src.options(ctx, a, args)
			if err != nil {
				return err
			}
			counter := store.NewCounter(o.Tree)
			o.Tree = counter
			t, err := a.openAll(ctx, args, o)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := spare(out.file, t.Sources()); err != nil {
				return err
			}
			opened := len(counter.Reads())
			x, err := t.Explain(ctx, spec, analyze)
			if err != nil {
				return err
			}
			doc := docOfExplanation(x)
			if doc.Ran != nil {
				doc.Ran.count(counter.Reads(), opened)
				doc.Ran.FileBytes = known(a.sizeOf(ctx, t.Sources()))
			}
			err = a.put(ctx, &out, func(w io.Writer) error {
				if out.form == "json" {
					return writeLines(w, []explainDoc{doc})
				}
				return writeExplanation(w, doc, a.style(&out))
			})
			return a.noticed(t.Findings(), err)
		},
	}
	sel.registerColumns(a, cmd, &src)
	sel.registerWhere(cmd)
	sel.registerParallel(cmd)
	sel.registerMemory(cmd)
	for _, name := range []string{"parallel", "memory"} {
		f := cmd.Flags().Lookup(name)
		f.Usage = "with --analyze: " + f.Usage
	}
	cmd.Flags().BoolVar(&analyze, "analyze", false, "run the scan and tell what it did")
	out.register(cmd, explainForms, "default text")
	src.register(a, cmd)
	return cmd
}

// sizeOf is the size of all sources; -1 if one is not known.
func (a *app) sizeOf(ctx context.Context, sources []stoa.SourceInfo) (sum int64) {
	for _, s := range sources {
		n := a.size(ctx, s.Name)
		if n < 0 {
			return -1
		}
		sum += n
	}
	return sum
}

func docOfExplanation(x *stoa.Explanation) explainDoc {
	d := explainDoc{Filter: x.Filter}
	for _, l := range x.Levels {
		row := explainRow{Level: string(l.Level), Column: l.Column, Filter: l.Filter,
			Considered: known(l.Considered), Read: known(l.Read), Skipped: l.Skipped, Used: l.Used}
		if l.Level != "rows" {
			row.Bytes, row.Total = known(l.Bytes), known(l.Total)
		}
		d.Levels = append(d.Levels, row)
	}
	if r := x.Ran; r != nil {
		d.Ran = &explainRan{Rows: r.Rows, Seconds: r.Elapsed.Seconds(), PageReads: known(r.Reads),
			PageBytes: known(r.Bytes)}
	}
	return d
}

// count takes in the reads, of which the first opened were before.
func (x *explainRan) count(reads []store.Read, opened int) {
	for i, r := range reads {
		if i < opened {
			x.OpenReads++
			x.OpenBytes += int64(r.Got)
		} else {
			x.ScanReads++
			x.ScanBytes += int64(r.Got)
		}
	}
	slices.SortFunc(reads, func(a, b store.Read) int {
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

func writeExplanation(w io.Writer, d explainDoc, style tableStyle) error {
	if d.Filter != "" {
		if _, err := fmt.Fprintf(w, "where %s\n\n", oneLine(d.Filter)); err != nil {
			return err
		}
	}
	r := &report{cols: []reportColumn{{name: "level"}, {name: "column"}, {"considered", true}, {"read", true},
		{"bytes", true}, {"of", true}, {name: "passed over"}}}
	used := slices.ContainsFunc(d.Levels, func(l explainRow) bool { return len(l.Used) > 0 })
	if used {
		r.cols = append(r.cols, reportColumn{name: "filtered by"})
	}
	for _, l := range d.Levels {
		column := l.Column
		if l.Filter {
			column += " (filter)"
		}
		cells := []string{l.Level, column, orNothing(l.Considered, thousands), orNothing(l.Read, thousands),
			orNothing(l.Bytes, bytesText), orNothing(l.Total, bytesText), reasonsText(l.Skipped)}
		if used {
			cells = append(cells, reasonsText(l.Used))
		}
		r.add(nil, cells...)
	}
	if err := r.writeTable(w, style); err != nil || d.Ran == nil {
		return err
	}
	return d.Ran.write(w)
}

func (x *explainRan) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s came out in %.3f s; ", count(x.Rows, "row"), x.Seconds)
	if x.PageReads != nil {
		fmt.Fprintf(&b, "%s of pages in %s, with dictionaries and metadata ", bytesText(*x.PageBytes),
			count(*x.PageReads, "read"))
	}
	fmt.Fprintf(&b, "%s in %s; before, telling the format and opening took %s in %s; ", bytesText(x.ScanBytes),
		count(x.ScanReads, "read"), bytesText(x.OpenBytes), count(x.OpenReads, "read"))
	fmt.Fprintf(&b, "%s was read at least once", bytesText(x.Distinct))
	if x.FileBytes != nil {
		fmt.Fprintf(&b, ", of %s", bytesText(*x.FileBytes))
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

func reasonsText(all []stoa.Reason) string {
	var out []string
	for _, s := range all {
		out = append(out, fmt.Sprintf("%s: %s", s.Why, thousands(s.N)))
	}
	return strings.Join(out, "; ")
}

func orNothing(n *int64, text func(int64) string) string {
	if n == nil {
		return ""
	}
	return text(*n)
}
