package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/fault"
	"stoa/format"
)

// segmentDoc is what -f json has for each segment; null is not known, times are RFC 3339.
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

// lsSegments lists the segments of CarbonData tables: of each table of a store, and of tables by themselves.
func (a *app) lsSegments(cmd *cobra.Command, args []string, src *sourceFlags, out *outputFlags) error {
	ctx := cmd.Context()
	if err := out.check(reportForms); err != nil {
		return err
	}
	o, err := src.options(ctx, a, args)
	if err != nil {
		return err
	}
	r := &report{keys: 2, cols: []reportColumn{{name: "table"}, {name: "segment"}, {name: "status"}, {name: "read"},
		{name: "load began"}, {name: "load ended"},
		{"files", true}, {"rows", true}, {"deleted", true}, {"data", true}, {"index", true}, {name: "merged into"},
		{name: "merged"}, {name: "problem"}}}
	broken := false
	failed := a.eachPath(ctx, cmd, args, func(p string) error {
		names, err := a.segmented(ctx, p, o)
		for _, name := range names {
			list, err := stoa.Segments(ctx, name, o)
			if err != nil {
				if len(names) == 1 {
					return err
				}
				a.tell(cmd, err) // one broken table does not hide the others
				broken = true
				continue
			}
			for _, s := range list {
				broken = broken || errors.Is(s.Err, fault.Corrupt)
				addSegment(r, name, s)
			}
		}
		return err
	})
	if failed != nil && len(r.rows) == 0 {
		return failed
	}
	if err := r.write(ctx, a, out); err != nil {
		return err
	}
	if failed == nil && broken {
		return errDamage
	}
	return failed
}

// segmented are the CarbonData tables of a place, by the names that open them.
func (a *app) segmented(ctx context.Context, p string, o stoa.OpenOptions) (out []string, err error) {
	f, err := stoa.Probe(ctx, targetOf(o, withoutTable(p)), o)
	switch {
	case errors.Is(err, fault.Unsupported) || err == nil && (f.Change == nil || f.Change.Segments == nil):
		return nil, fault.Unsupportedf(fault.Span{Object: p}, "",
			"--segments is for CarbonData tables and stores, and there is none here")
	case err != nil:
		return nil, err
	case withoutTable(p) != p:
		return []string{p}, nil
	}
	// a table; one that cannot be read has segments, too
	if _, err := f.Change.Locate(ctx, o.Tree, p, false); err == nil {
		return []string{p}, nil
	}
	for e, err := range stoa.List(ctx, p, o) {
		if err != nil && e.Place != "" { // lies beside
			continue
		}
		if err != nil {
			return out, err
		}
		if e.Format != f.Name { // lies beside
			continue
		}
		name := e.Place
		if e.Table != "" {
			name += "#" + e.Table
		}
		out = append(out, name)
	}
	return out, nil
}

// targetOf is a name as a format takes it.
func targetOf(o stoa.OpenOptions, name string) format.Target {
	place := withoutTable(name)
	return format.Target{Tree: o.Tree, Name: place, Table: strings.TrimPrefix(name[len(place):], "#")}
}

func addSegment(r *report, table string, s format.Segment) {
	d := segmentDoc{table, s.Name, s.Status, s.Read, rfc(s.Began), rfc(s.Ended), rfc(s.Changed),
		known(int64(s.Files)), known(s.Rows), s.Deleted,
		known(s.Data), known(s.Index), s.MergedInto, s.Merged, s.Format, s.Path, ""}
	if s.Err != nil {
		d.Problem = problem(s.Err)
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
	r.add(d, table, s.Name, status, read, rfc(s.Began), rfc(s.Ended), maybe(int64(s.Files)), maybe(s.Rows), deleted,
		bytesText(s.Data), bytesText(s.Index),
		s.MergedInto, strings.Join(s.Merged, ","), d.Problem)
}

func rfc(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}
