package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/report"
	"stoa/cmd/stoa/internal/rerun"
	"stoa/store/remote"
)

const migrateLong = `Write every table of the PLACEs, such as a store, a cluster or a directory at any depth, as a table
of Iceberg (or of the format of --to) in the directory WAREHOUSE, with a report: WAREHOUSE/report.html,
report.json and report.txt, which is also printed.

The report has for each table the rows, a checksum of the values that were read and of those that were
read back from the output, the columns whose type is another one there, every value that changed and why,
and the dates that other systems may read differently: before 15 October 1582, where Java's calendar and
the Gregorian one differ, and outside of the years 1 to 9999. A table that fails has a line with the
reason, and the others are written nevertheless. What is no table is left out, with a note.

--dry-run writes nothing and prints the plan: what the report will have about types and dates, names that
collide, values that the output cannot hold, sizes, and the time that it may take, from samples that are
written to memory. It reads all dates and times; --quick leaves that out.

Each table appears when it is complete, with its last file. --resume continues a run that was killed:
finished tables are read back and compared, the others are written. A table that has got snapshots since
is not written again: convert --catch-up brings it up to date, unless others have changed its rows. The
status is 0 only if all tables are there, and have the rows that were read or, where the files of a source
have changed since, those that it has now. A table that only others have changed is left, and told.`

// MigrateCmd is the verb migrate.
func MigrateCmd(a *cli.App) *cobra.Command {
	m := migration{c: &conversion{}, a: a}
	cmd := &cobra.Command{
		Use:   "migrate PLACE... -o WAREHOUSE",
		Short: "Write all tables of a place as Iceberg or Delta, with a plan and a report",
		Long:  migrateLong,
		Example: `  stoa migrate kudu -o warehouse/
  stoa migrate store --dry-run
  stoa migrate store -o lake/ --to iceberg,delta --parallel 2`,
		Args: a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			m.cmd, m.roots, m.began = cmd, args, time.Now()
			return m.run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&m.resume, "resume", false, "continue an earlier run with the same WAREHOUSE")
	fl.BoolVar(&m.dry, "dry-run", false, "write nothing, and print the plan")
	fl.BoolVar(&m.quick, "quick", false, "with --dry-run: do not read dates and times, and take no samples")
	m.c.writeFlags.register(a, cmd)
	m.c.registerPartitionBy(cmd)
	m.c.RegisterParallel(cmd)
	for name, usage := range map[string]string{
		"output":   "write to the directory `WAREHOUSE`; required without --dry-run",
		"to":       "write tables as `FORMAT` (default iceberg)",
		"format":   "print the plan or the report as `FORM`: text or json",
		"parallel": "write `N` tables at a time (default: as many as there are cores)",
	} {
		fl.Lookup(name).Usage = usage
	}
	m.c.DamageFlags.Register(cmd, "fail")
	m.c.SourceFlags.Register(a, cmd)
	return cli.First(cli.Hide(cmd, "manifest", "schema"), "output", "dry-run", "resume")
}

// migration is a run of the verb.
type migration struct {
	c                  *conversion
	a                  *cli.App
	cmd                *cobra.Command
	roots              []string
	dir                string
	resume, dry, quick bool
	parallel, samples  int
	began              time.Time
	doc                migrateDoc
}

func (m *migration) run(ctx context.Context) error {
	oo, wo, err := m.prepare(ctx)
	if err != nil {
		return err
	}
	tables, left, _, err := gather(ctx, m.a, m.roots, oo, wo)
	if err != nil && len(tables) == 0 {
		return err
	}
	keepFree(tables, m.a.Format(wo.To), report.Names...)
	for _, l := range left {
		m.doc.Left = append(m.doc.Left, leftDoc{l.source, cli.Line(l.err)})
	}
	if m.dry {
		return m.plan(ctx, tables, left, wo)
	}
	st, err := rerun.OpenState(ctx, m.a, m.dir, m.resume, m.c.settings(), m.roots...)
	if err != nil {
		return err
	}
	if m.c.levels == 0 {
		keepNames(st, tables, m.c.ext)
	}
	for i := range tables {
		m.doc.Tables = append(m.doc.Tables, m.tableDoc(&tables[i]))
	}
	if err := m.begin(ctx, st); err != nil {
		return err
	}
	m.a.Remote()
	all := &allRun{c: m.c, a: m.a, cmd: m.cmd, dir: m.dir, state: st, began: m.began, converted: m.doc.add,
		parallel: m.parallel}
	if _, err := all.tables(ctx, tables, left); err != nil {
		return err
	}
	m.doc.settle(st.Failed)
	m.doc.Seconds = time.Since(m.began).Seconds()
	if err := report.Write(ctx, m.a, m.dir, &m.doc, m.doc.form); err != nil {
		return err
	}
	m.a.Note("%s/: %s, %s", m.dir, m.doc.verdict(), display.Seconds(time.Since(m.began)))
	return all.worst
}

// begin refuses to replace what is in the warehouse already, and records that this run has begun: what a later run
// finds there under the names of its tables is then of this one.
func (m *migration) begin(ctx context.Context, st *rerun.State) error {
	if st.Kept {
		return nil
	}
	if err := report.Taken(m.dir); err != nil && !remote.Is(m.dir) {
		return err
	}
	for _, t := range m.doc.Tables {
		name := filepath.Join(m.dir, t.Output)
		switch _, err := m.a.Stat(ctx, name); {
		case err == nil:
			return &cli.UseError{Message: remote.Shown(name) + " is there already: migrate replaces nothing",
				Hint: "choose another directory"}
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return st.Save(ctx, m.a, m.dir)
}

// prepare derives from the flags how to read and to write, and refuses what is impossible.
func (m *migration) prepare(ctx context.Context) (oo stoa.OpenOptions, wo stoa.CreateOptions, err error) {
	c := m.c
	c.to = cmp.Or(c.to, "iceberg")
	if m.dry && c.out == "" {
		c.out = "warehouse" // which is not written
	}
	switch {
	case m.quick && !m.dry:
		return oo, wo, cli.WrongUse("--quick goes with --dry-run")
	case m.dry && m.resume:
		return oo, wo, cli.WrongUse("--dry-run writes nothing: --resume has no meaning with it")
	}
	if wo, err = c.options(m.a); err != nil {
		return oo, wo, err
	}
	c.levels, c.ext = m.a.Format(wo.To).Levels, extOf(m.a.Format(wo.To))
	m.doc = migrateDoc{Stoa: "migrate", Roots: m.roots, Output: strings.TrimRight(c.out, "/"), To: c.to,
		Damaged: c.Damaged, DryRun: m.dry, Began: m.began.UTC().Truncate(time.Second), Complete: true,
		Tables: []*migratedTable{}, Left: []leftDoc{}, form: c.form}
	m.dir, c.form, c.surveyed, c.goOn = m.doc.Output, "text", true, m.resume
	switch {
	case c.out == cli.Dash:
		return oo, wo, cli.WrongUse("migrate writes a directory, not standard output")
	case c.Manifest != "":
		return oo, wo, cli.WrongUse("migrate has no --manifest: %s has all losses", report.JSON)
	case slices.Contains(m.roots, cli.Dash):
		return oo, wo, cli.WrongUse("migrate reads places, not standard input")
	case remote.Is(m.dir) && c.levels > 0:
		return oo, wo, cli.WrongUse("several tables as %s share a directory, which cannot be added to at an address",
			c.to)
	case m.a.Format(wo.To).Create == nil:
		return oo, wo, cli.WrongUse("stoa does not write %s", wo.To)
	}
	if err := cli.CheckWritable(m.dir); err != nil {
		return oo, wo, err
	}
	if !m.dry {
		if err := cli.CheckOutput(m.dir, cli.PlacesOf(m.roots)); err != nil {
			return oo, wo, err
		}
	}
	if oo, err = c.SourceFlags.Options(ctx, m.a, m.roots); err != nil {
		return oo, wo, err
	}
	if oo.Opts["schema"] != "" {
		return oo, wo, &cli.UseError{Message: "migrate writes tables that have names; what --schema reads has none",
			Hint: cli.BySchema(m.roots[0])}
	}
	m.doc.At = oo.Opts["at"]
	m.parallel = cmp.Or(c.SelectFlags.Parallel, runtime.NumCPU())
	if m.parallel < 1 {
		return oo, wo, cli.WrongUse("--parallel %d: at least one table is written at a time", m.parallel)
	}
	m.parallel = min(m.parallel, maxTables)
	c.SelectFlags.Parallel = max(1, runtime.NumCPU()/m.parallel)
	if m.parallel > 1 {
		m.a.NoProgress = true // one line cannot show several tables
	}
	return oo, wo, nil
}

// maxTables is how many tables are written at a time at most.
const maxTables = 64

// tableDoc begins the report of a table.
func (m *migration) tableDoc(t *oneTable) *migratedTable {
	x := &migratedTable{Source: t.source, Table: t.table, ID: t.id, Format: t.entry.Format,
		Output: strings.TrimSuffix(t.output, m.c.ext), Types: []typeChange{}, state: statePlanned,
		SourceBytes: t.entry.Bytes, Parts: len(t.entry.Parts)}
	if m.a.Format(m.c.to).Owns == nil {
		x.Output = t.output
	}
	if t.wanted != "" {
		x.Collides = t.wanted
		other := "another table"
		if slices.Contains(report.Names, strings.ToLower(t.wanted)) {
			other = "a report"
		}
		x.note(fmt.Sprintf("%s is %s: this one is %s", other, t.wanted, x.Output))
	}
	return x
}
