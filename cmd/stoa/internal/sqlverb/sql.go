// Package sqlverb is the part of the verb sql that needs no database: its flags and its help, and the search for the
// program that has one, stoa-sql, which is a module of its own.
package sqlverb

import (
	"context"
	"os"
	"os/signal"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/companion"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
)

// Flags are the flags of the verb.
type Flags struct {
	Tables      []string // NAME=ADDRESS
	Attach      []string // NAME=PLACE
	Within      []string // nothing else is read, and nothing written; nil: no such limit
	At          string
	Threads     int
	Memory      string
	Script      string // a file; -: standard input
	Interactive bool
	reading.DamageFlags
	output.OutputFlags
}

// Workers returns how many threads a query uses.
func (f *Flags) Workers() int {
	if f.Threads == 0 {
		return runtime.NumCPU()
	}
	return f.Threads
}

// MemoryBytes returns the limit of --memory; 0: none.
func (f *Flags) MemoryBytes() (int64, error) {
	if f.Memory == "" {
		return 0, nil
	}
	return cli.ParseSize("--memory", f.Memory)
}

// Run runs the verb with the flags and arguments of a command line.
type Run func(ctx context.Context, a *cli.App, f *Flags, args []string) error

// maxThreads is the maximum number of threads of a query.
const maxThreads = 1024

// Cmd returns the verb. If run is nil, it runs the program stoa-sql.
func Cmd(a *cli.App, run Run) *cobra.Command {
	f := &Flags{}
	cmd := &cobra.Command{
		Use:   "sql [QUERY]",
		Short: "Run SQL over tables of all formats",
		Long: `Run SQL over tables of all formats. In a query, a table is a path or address in quotes, as
in from 'dir#orders'; a name that --table defines; or, with --attach, a table of a place. Without QUERY,
the statements are read from --script or standard input.

The SQL is DuckDB's. Columns that a query does not need are not read, nor are pages that its filters
exclude; put explain before a query to see it. stoa('dir#t', at := '2026-11-01', damaged := 'skip-rows')
reads with options; others are filter, format and options ('KEY=VALUE,…'). stoa_ls, stoa_stats,
stoa_verify, stoa_describe, stoa_explain, stoa_history and stoa_diff return the results of these verbs as
tables.

copy (QUERY) to 'x.cfile' and create table 'x.trv' as QUERY write with stoa's writers.

A query that meets damage ends with status 3; with --damaged, the damage is skipped and reported, and the
status is 3 as well. An error in the query is status 2. The verb is run by a separate program, stoa-sql,
beside stoa or on the PATH.`,
		Example: "  stoa sql \"select b, count(*) from 'kudu#d_major' group by b\"\n" +
			"  stoa sql --table o=orders.parquet \"select sum(price) from o\" -f json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return &cli.UseError{Message: "sql takes one query", Hint: "put it in quotes"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(a, cmd.Flags().Changed("threads")); err != nil {
				return err
			}
			if run == nil {
				return pass(cmd, a, f, args)
			}
			return run(cmd.Context(), a, f, args)
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVarP(&f.Tables, "table", "t", nil, "name a table: `NAME=ADDRESS`; repeatable")
	fl.StringArrayVar(&f.Attach, "attach", nil,
		"make the tables of a place a schema: `NAME=PLACE`; repeatable")
	fl.StringArrayVar(&f.Within, "within", nil,
		"read only what lies below `PLACE`, and write nothing; repeatable: for queries of others")
	fl.StringVar(&f.At, "at", "", "read tables as they were at `TIME`, if their format keeps history")
	fl.IntVar(&f.Threads, "threads", 0, "run with `N` threads (default: as many as there are cores)")
	fl.StringVar(&f.Memory, "memory", "", "use about `SIZE` of memory, for example 2GB (default: DuckDB's)")
	fl.StringVar(&f.Script, "script", "",
		"read the statements from `FILE`, separated by semicolons (- is standard input)")
	fl.BoolVarP(&f.Interactive, "interactive", "i", false, "read statements from a prompt; type .help there")
	f.OutputFlags.Register(cmd, output.RowForms, "default: what the extension of -o says, else table on a terminal "+
		"and jsonl elsewhere")
	f.DamageFlags.Register(cmd, "fail")
	return cli.First(cmd, "table", "attach", "format")
}

// check returns an error about flags that are wrong whatever the statements are.
func (f *Flags) check(a *cli.App, threads bool) error {
	if (threads && f.Threads < 1) || f.Threads > maxThreads {
		return cli.WrongUse("--threads %d: expected 1 to %d", f.Threads, maxThreads)
	}
	if err := f.DamageFlags.Check(); err != nil {
		return err
	}
	_, err := f.RowForm(a)
	return err
}

// pass makes stoa-sql run the command line.
func pass(cmd *cobra.Command, a *cli.App, f *Flags, args []string) error {
	if f.Interactive { // Ctrl-C ends a statement there, and not the dialogue
		signal.Ignore(os.Interrupt)
		defer signal.Reset(os.Interrupt)
	}
	return companion.Run(cmd, a, companion.SQL, "sql", append(given(cmd), args...)...)
}

// given returns the flags as they were given.
func given(cmd *cobra.Command) (out []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		value := f.Value
		if c, ok := value.(*cli.Completed); ok {
			value = c.Value
		}
		if many, ok := value.(pflag.SliceValue); ok {
			for _, v := range many.GetSlice() {
				out = append(out, "--"+f.Name+"="+v)
			}
			return
		}
		out = append(out, "--"+f.Name+"="+value.String())
	})
	return append(out, "--")
}

// Words returns the arguments of the verb for stoa-sql, which may be called with or without the verb's name.
func Words(args []string) []string {
	if len(args) > 0 && args[0] == "sql" {
		return args
	}
	return append([]string{"sql"}, args...)
}
