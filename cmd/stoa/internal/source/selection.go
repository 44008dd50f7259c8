package source

import (
	"context"
	"math"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/config"
	"stoa/pred"
	"stoa/vec"
)

// SelectFlags select the cells to read.
type SelectFlags struct {
	Columns []string
	Where   string
	Limit   int64
	Rows    string

	unordered bool
	Parallel  int
	memory    string // "" = no limit

	whereSet func() bool // --where is given, even if it is empty
	ButLast  bool        // -n may be negative: all rows but the last
	Limited  func() bool // -n applies, even if it is 0; nil: there is no -n
}

func (f *SelectFlags) Register(a *cli.App, cmd *cobra.Command, src *SourceFlags) {
	f.RegisterColumns(a, cmd, src)
	f.RegisterRows(cmd)
	f.RegisterParallel(cmd)
}

// RegisterColumns is for verbs that select rows in their own way.
func (f *SelectFlags) RegisterColumns(a *cli.App, cmd *cobra.Command, src *SourceFlags) {
	cmd.Flags().StringArrayVarP(&f.Columns, "columns", "c", nil,
		"read only these columns: `a,b.c` (a dot before the field of a struct; double quotes around a name with "+
			"a comma; 'd*' and other patterns for all that match)")
	cli.CompleteWith(cmd, "columns", CompleteColumns(a, src))
}

// RegisterRows is for verbs that print no cells.
func (f *SelectFlags) RegisterRows(cmd *cobra.Command) {
	f.RegisterWhere(cmd)
	cmd.Flags().StringVar(&f.Rows, "rows", "",
		"read only rows `FROM:TO`: from position FROM, counted from 0, up to but not including TO; either "+
			"may be left out")
}

// RegisterWhere is for verbs that do not select rows by position.
func (f *SelectFlags) RegisterWhere(cmd *cobra.Command) {
	fl := cmd.Flags()
	f.whereSet = func() bool { return fl.Changed("where") }
	fl.StringVarP(&f.Where, "where", "w", "",
		"read only rows for which the `PREDICATE` is true, such as \"price > 3 and name like 'a%'\" "+
			"(stoa help predicates)")
	fl.BoolVar(&f.unordered, "unordered", false, "return rows in any order, which can be faster")
}

// RegisterParallel is for verbs that read rows.
func (f *SelectFlags) RegisterParallel(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.Parallel, "parallel", 0, "read with `N` workers (default: as many as there are cores)")
}

// RegisterMemory is for verbs that read rows but do not write tables: there --memory is the writer's.
func (f *SelectFlags) RegisterMemory(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.memory, "memory", "",
		"keep about `SIZE` of rows in memory, for example 64MiB (default: 65,536 rows per worker)")
}

// RegisterLimit is for verbs for which a limit makes sense.
func (f *SelectFlags) RegisterLimit(cmd *cobra.Command, preset int64, usage string) {
	cmd.Flags().Int64VarP(&f.Limit, "limit", "n", preset, usage)
	f.Limited = func() bool { return preset > 0 || cmd.Flags().Changed("limit") }
}

// maxWorkers is the maximum number of workers of a scan.
const maxWorkers = 1024

// Spec converts the flags to the specification of a scan.
func (f *SelectFlags) Spec() (stoa.ScanSpec, error) {
	s := stoa.ScanSpec{Alloc: cli.Pool, Limit: f.Limit, Unordered: f.unordered, Parallel: f.Parallel}
	switch {
	case f.Parallel < 0:
		return s, cli.WrongUse("--parallel %d: a number of workers is not negative", f.Parallel)
	case f.Parallel > maxWorkers:
		return s, cli.WrongUse("--parallel %d: %d workers at most", f.Parallel, maxWorkers)
	case f.Parallel == 0 && (f.Limit <= 0 || f.Limit > 1<<20): // for a few rows, more workers would read in vain
		s.Parallel = runtime.NumCPU()
	}
	if f.memory != "" {
		var err error
		if s.Memory, err = cli.ParseSize("--memory", f.memory); err != nil {
			return s, err
		}
	}
	for _, c := range f.Columns {
		names, err := SplitNames(c, true)
		if err != nil {
			return s, err
		}
		s.Columns = append(s.Columns, names...)
	}
	var err error
	if s.Rows, err = parseRows(f.Rows); err != nil {
		return s, err
	}
	if f.Limited != nil && f.Limited() {
		switch {
		case f.Limit < 0 && !f.ButLast:
			return s, cli.WrongUse("-n %d: a number of rows is not negative", f.Limit)
		case f.Limit == 0:
			s.Rows = NoRows
		}
	}
	switch {
	case strings.TrimSpace(f.Where) != "":
		s.Filter, err = pred.Parse(f.Where)
	case f.whereSet != nil && f.whereSet(): // an empty shell variable must not select everything
		return s, cli.WrongUse("--where: the predicate is empty")
	}
	return s, err
}

// NoRows is a range without rows: empty, but not the zero range, which means all rows.
var NoRows = vec.Range{From: 1, To: 1}

// parseRows parses FROM:TO.
func parseRows(s string) (vec.Range, error) {
	if s == "" {
		return vec.Range{}, nil
	}
	from, to, ok := strings.Cut(s, ":")
	r := vec.Range{To: math.MaxInt64}
	var err1, err2 error
	if from != "" {
		r.From, err1 = strconv.ParseInt(from, 10, 64)
	}
	if to != "" {
		r.To, err2 = strconv.ParseInt(to, 10, 64)
	}
	switch {
	case !ok || from == "" && to == "" || err1 != nil || err2 != nil || r.From < 0 || r.To < 0:
		return r, &cli.UseError{Message: "--rows " + s + " is not FROM:TO",
			Hint: "for example 100:200, 100: or :200; the first row is 0"}
	case r.From > r.To:
		return r, cli.WrongUse("--rows %s ends before it begins", s)
	case r.Len() == 0:
		return NoRows, nil
	}
	return r, nil
}

// SplitNames splits at commas, except inside double quotes. A name that is completely quoted is one name, whatever it
// contains. With paths, a name with a point stays quoted, as in a path.
func SplitNames(s string, paths bool) ([]string, error) {
	var out []string
	for {
		name, rest, more := cutQuoted(s, '"')
		name = strings.TrimSpace(name)
		if q, ok := wholeQuoted(name); ok {
			switch {
			case paths && strings.ContainsAny(q, globs): // it is no pattern
				name = `"` + strings.ReplaceAll(q, `"`, `""`) + `"`
			case paths && strings.Contains(q, "."):
				name = pred.JoinPath(q)
			default:
				name = q
			}
		}
		if name == "" {
			return nil, cli.WrongUse("--columns: there is an empty name in %q", s)
		}
		out = append(out, name)
		if !more {
			return out, nil
		}
		s = rest
	}
}

// cutQuoted cuts at the first comma outside of quotes.
func cutQuoted(s string, quote byte) (before, after string, found bool) {
	in := false
	for i := range len(s) {
		switch {
		case s[i] == quote:
			in = !in
		case s[i] == ',' && !in:
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

func wholeQuoted(s string) (string, bool) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' ||
		strings.Contains(strings.ReplaceAll(s[1:len(s)-1], `""`, ""), `"`) {
		return "", false
	}
	return strings.ReplaceAll(s[1:len(s)-1], `""`, `"`), true
}

// CompleteColumns completes --columns with the column names of the first source.
func CompleteColumns(a *cli.App, src *SourceFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		const flags = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		if len(args) == 0 || args[0] == cli.Dash {
			return nil, flags
		}
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		if a.UserConfig && a.Config == nil {
			a.Config, _ = config.Load() // an error is reported by the verb itself
		}
		at, err := a.Config.Expand(args[0])
		if err != nil {
			return nil, flags
		}
		t, err := src.Open(ctx, a, []string{at})
		if err != nil {
			return nil, flags
		}
		defer t.Close()
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		var out []string
		for _, f := range t.Schema().Fields() {
			out = append(out, before+f.Name)
		}
		return out, flags
	}
}
