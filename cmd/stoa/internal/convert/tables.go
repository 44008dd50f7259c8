package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/pieces"
	"stoa/cmd/stoa/internal/rerun"
	flags "stoa/cmd/stoa/internal/source"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
)

// oneTable is a table to be converted.
type oneTable struct {
	source, output string
	table, id      string        // the place's name for it; "": it has none
	parts          []string      // the names of its parts
	stamp          string        // of the files in which it may lie
	earlier        func() string // the stamp that earlier releases made of them
	opening        stoa.OpenOptions
	unopened       bool // it cannot be opened without recovery
	entry          format.Entry
	wanted         string // the name of the output, had no other table taken it; "": it has that
}

// stampMark begins the stamps of this release. Those of earlier ones are of whole places, and depend on how the place
// was spelled.
const stampMark = "1:"

// stampBy gives a table its stamp: of the directories in which it lies or, where these are not known, of its place, and
// of the files that options name.
func (t *oneTable) stampBy(ctx context.Context, s *pieces.Stamper, place string, named ...string) {
	whole := append([]string{place}, named...)
	own := whole
	if len(t.entry.Dirs) > 0 {
		own = append(append([]string{}, t.entry.Dirs...), named...)
	}
	t.stamp = stampMark + s.Stamp(ctx, own, false)
	t.earlier = func() string { return s.Stamp(ctx, whole, true) }
}

// stamped reports whether a stamp of an earlier run is that of the table.
func (t *oneTable) stamped(stamp string) bool {
	return stamp == t.stamp || !strings.HasPrefix(stamp, stampMark) && stamp == t.earlier()
}

// about reports whether a finding of the table's place is about the table, as far as the place names its parts.
func (t *oneTable) about(f region.Finding) bool {
	return f.Part == "" || t.holds(f.Part)
}

// holds reports whether a part is the table's, and not, say, the catalogue's, as far as the place names its parts.
func (t *oneTable) holds(part string) bool {
	return len(t.parts) == 0 || part == t.table || part == t.id || slices.Contains(t.parts, part)
}

// leftTable is something that may be a table, with the reason why it is not converted.
type leftTable struct {
	source string
	format string // the format that recognized it; "": none did
	err    error
}

// unopened moves files that are too damaged to be opened from left to tables: recovery may be able to read them.
func unopened(ctx context.Context, tables []oneTable, left []leftTable, o stoa.OpenOptions, to *format.Format,
	stamps *pieces.Stamper) (_ []oneTable, rest []leftTable) {
	ext := extOf(to)
	taken := map[string]bool{}
	for _, t := range tables {
		taken[strings.ToLower(strings.TrimSuffix(t.output, ext))] = true
	}
	for _, l := range left {
		info, err := o.Tree.Stat(ctx, l.source)
		if err != nil || info.Dir || !errors.Is(l.err, fault.Corrupt) {
			rest = append(rest, l)
			continue
		}
		name := filepath.Base(l.source)
		name = free(pieces.FileName(strings.TrimSuffix(name, filepath.Ext(name))), taken)
		opening := o
		opening.From = l.format
		t := oneTable{source: l.source, output: name + ext, opening: opening, unopened: true}
		t.stampBy(ctx, stamps, l.source)
		tables = append(tables, t)
	}
	return tables, rest
}

// extOf returns the extension of a format's files; "" if its tables are directories.
func extOf(f *format.Format) string {
	if f == nil || len(f.Extensions) == 0 {
		return ""
	}
	return f.Extensions[0]
}

// free returns name, with a number appended if name is taken, and marks it as taken.
func free(name string, taken map[string]bool) string {
	for base, n := name, 2; taken[strings.ToLower(name)]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	taken[strings.ToLower(name)] = true
	return name
}

// gather returns the tables of the paths, of which several may be one place, with the options that read them.
func gather(ctx context.Context, a *cli.App, paths []string, oo stoa.OpenOptions,
	wo stoa.CreateOptions) ([]oneTable, []leftTable, stoa.OpenOptions, error) {
	paths, oo, err := flags.Together(a, ctx, paths, oo)
	if err != nil {
		return nil, nil, oo, err
	}
	for _, p := range paths {
		if err := stoa.InUse(ctx, p, oo); err != nil {
			return nil, nil, oo, &cli.OpenError{Err: err}
		}
	}
	stamps := &pieces.Stamper{Tree: oo.Tree}
	tables, left, err := tablesOf(a, ctx, paths, oo, a.Format(wo.To), stamps)
	return tables, left, oo, err
}

// tablesOf returns the tables of the places, with the names of their outputs. left are the files of directories that
// are not among them, with the reasons.
func tablesOf(a *cli.App, ctx context.Context, paths []string, o stoa.OpenOptions, to *format.Format,
	stamps *pieces.Stamper) (out []oneTable, left []leftTable, err error) {
	ext := extOf(to)
	taken := map[string]bool{}
	for _, p := range paths {
		var entries []format.Entry
		for e, err := range stoa.List(ctx, p, o) {
			switch {
			case err != nil && e.Place != "" && ctx.Err() == nil:
				left = append(left, leftTable{e.Place, e.Format, err})
				continue
			case (len(paths) > 1 || o.Recover && len(entries) > 0) && errors.Is(err, fault.Corrupt) &&
				ctx.Err() == nil: // the others are converted
				left = append(left, leftTable{p, e.Format, err})
				continue
			}
			if err != nil {
				return nil, nil, &cli.OpenError{Err: err}
			}
			entries = append(entries, e)
		}
		named := map[string]int{}
		for _, e := range entries {
			named[e.Table]++
		}
		for _, e := range entries {
			source, name := e.Place, e.Table
			if name == "" {
				name = filepath.Base(e.Place)
				name = strings.TrimSuffix(name, filepath.Ext(name))
			} else {
				source += "#" + name
				if id := idOf(e); id != "" && named[name] > 1 {
					source, name = e.Place+"#"+id, name+"-"+id
				}
			}
			wanted := pieces.FileName(name)
			if name = free(wanted, taken); name == wanted {
				wanted = ""
			}
			_, opening := stoa.Named(e, o)
			var parts []string
			for _, part := range e.Parts {
				parts = append(parts, part.Table)
			}
			t := oneTable{source: source, output: name + ext, table: e.Table, id: idOf(e), parts: parts,
				opening: opening, entry: e, wanted: wanted}
			t.stampBy(ctx, stamps, e.Place, flags.NamedBy(a, opening.Opts)...)
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		for _, l := range left {
			err = errors.Join(err, l.err)
		}
		return nil, left, errors.Join(err, errors.New("there are no tables to convert"))
	}
	return out, left, nil
}

func idOf(e format.Entry) string {
	for _, m := range e.Meta {
		if m.Key == "table_id" {
			return m.Value
		}
	}
	return ""
}

// keepNames gives tables that are done, or were about to appear, their existing output names, which no other table may
// get.
func keepNames(st *rerun.State, tables []oneTable, ext string) {
	withoutExt := func(name string) string { return strings.ToLower(strings.TrimSuffix(name, ext)) }
	taken := map[string]bool{}
	known := func(t oneTable) *rerun.Table { return cmp.Or(st.Find(t.source), st.Announced(t.source)) }
	for i := range tables {
		if previous := known(tables[i]); previous != nil {
			tables[i].output = strings.TrimSuffix(previous.Output, ext) + ext
		}
	}
	for _, d := range slices.Concat(st.Done, st.Next) {
		taken[withoutExt(d.Output)] = true
	}
	for i, t := range tables {
		if known(t) != nil {
			continue
		}
		name := strings.TrimSuffix(t.output, ext)
		for base, n := name, 2; taken[strings.ToLower(name)]; n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		taken[strings.ToLower(name)] = true
		tables[i].output = name + ext
	}
}
