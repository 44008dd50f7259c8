package ls

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/source"
	"stoa/fault"
	"stoa/format"
)

// segmentDoc is what -f json prints for each segment. null means not known; times are RFC 3339.
type segmentDoc struct {
	Table      string   `json:"table"`
	Segment    string   `json:"segment"`
	Status     string   `json:"status"`
	Read       bool     `json:"read"`
	Began      string   `json:"load_began,omitempty"`
	Ended      string   `json:"load_ended,omitempty"`
	Changed    string   `json:"changed,omitempty"`
	Files      *int64   `json:"files"`
	Rows       *int64   `json:"rows"`
	Deleted    int64    `json:"deleted_rows"`
	Data       *int64   `json:"data_bytes"`
	Index      *int64   `json:"index_bytes"`
	MergedInto string   `json:"merged_into,omitempty"`
	Merged     []string `json:"merged,omitempty"`
	Format     string   `json:"file_format,omitempty"`
	Path       string   `json:"path,omitempty"`
	Problem    string   `json:"problem,omitempty"`
}

// lsSegments lists the segments of CarbonData tables: of each table of a store, and of individual tables.
func lsSegments(a *cli.App, cmd *cobra.Command, args []string, src *source.SourceFlags, out *output.OutputFlags) error {
	ctx := cmd.Context()
	if err := out.Check(output.ReportForms); err != nil {
		return err
	}
	o, err := src.Options(ctx, a, args)
	if err != nil {
		return err
	}
	r := &output.Report{Keys: 2, Cols: []output.ReportColumn{{Name: "table"}, {Name: "segment"}, {Name: "status"},
		{Name: "read"},
		{Name: "load began"}, {Name: "load ended"},
		{Name: "files", Right: true}, {Name: "rows", Right: true}, {Name: "deleted", Right: true},
		{Name: "data", Right: true}, {Name: "index", Right: true}, {Name: "merged into"},
		{Name: "merged"}, {Name: "problem"}}}
	broken := false
	failed := source.EachPath(a, ctx, cmd, args, func(p string) error {
		names, err := segmented(a, ctx, p, o)
		for _, name := range names {
			list, err := stoa.Segments(ctx, name, o)
			if err != nil {
				if len(names) == 1 {
					return err
				}
				if errors.Is(err, fault.Unsupported) { // an index or a dictionary beside the tables
					continue
				}
				a.ReportError(cmd, err) // one broken table does not hide the others
				broken = true
				continue
			}
			for _, s := range list {
				broken = broken || errors.Is(s.Err, fault.Corrupt)
				addSegment(r, name, s, out)
			}
		}
		return err
	})
	if failed != nil && len(r.Rows) == 0 {
		return failed
	}
	if err := r.Write(ctx, a, out); err != nil {
		return err
	}
	if failed == nil && broken {
		return cli.ErrDamage
	}
	return failed
}

// segmented returns the tables with segments in a place, by the names with which they can be opened.
func segmented(a *cli.App, ctx context.Context, p string, o stoa.OpenOptions) (out []string, err error) {
	f, err := stoa.Probe(ctx, targetOf(o, cli.WithoutTable(p)), o)
	switch {
	case err != nil && cli.WithoutTable(p) != p:
		return nil, err
	case err == nil && hasSegments(f) && cli.WithoutTable(p) != p:
		return []string{p}, nil
	case err == nil && hasSegments(f):
		// a table; one that cannot be read has segments, too
		if _, err := f.Change.Locate(ctx, o.Tree, p, false); err == nil {
			return []string{p}, nil
		}
	}
	for e, err := range stoa.List(ctx, p, o) {
		if err != nil && e.Place != "" { // another file in the place
			continue
		}
		if err != nil {
			return out, err
		}
		if !slices.ContainsFunc(o.Formats,
			func(f format.Format) bool { return f.Name == e.Format && hasSegments(&f) }) {
			continue
		}
		name := e.Place
		if e.Table != "" {
			name += "#" + e.Table
		}
		out = append(out, name)
	}
	if len(out) == 0 {
		return nil, fault.Unsupportedf(fault.Span{Object: p}, "",
			"--segments is for CarbonData tables and stores, and there is none here")
	}
	return out, nil
}

func hasSegments(f *format.Format) bool { return f.Change != nil && f.Change.Segments != nil }

// targetOf converts a name to a target of a format.
func targetOf(o stoa.OpenOptions, name string) format.Target {
	place := cli.WithoutTable(name)
	return format.Target{Tree: o.Tree, Name: place, Table: strings.TrimPrefix(name[len(place):], "#")}
}

func addSegment(r *output.Report, table string, s format.Segment, out *output.OutputFlags) {
	d := segmentDoc{table, s.Name, s.Status, s.Read, rfc(s.Began), rfc(s.Ended), rfc(s.Changed),
		reading.Known(int64(s.Files)), reading.Known(s.Rows), s.Deleted,
		reading.Known(s.Data), reading.Known(s.Index), s.MergedInto, s.Merged, s.Format, s.Path, ""}
	if s.Err != nil {
		d.Problem = Problem(s.Err)
	}
	read := "no"
	if s.Read {
		read = "yes"
	}
	status := s.Status
	if s.Format != "" {
		status += " (" + s.Format + ")"
	}
	deleted := ""
	if s.Deleted > 0 {
		deleted = strconv.FormatInt(s.Deleted, 10)
	}
	r.Add(d, table, s.Name, status, read, rfc(s.Began), rfc(s.Ended), out.Number(int64(s.Files)),
		out.Number(s.Rows), deleted,
		out.Bytes(s.Data), out.Bytes(s.Index),
		s.MergedInto, strings.Join(s.Merged, ","), d.Problem)
}

func rfc(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
