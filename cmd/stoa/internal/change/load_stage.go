package change

import (
	"bufio"
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/source"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/fault"
	"stoa/stage"
	"stoa/store/remote"
)

// staging are the flags of a load in two phases.
type staging struct {
	stage, commit, abort string // the job
	task, attempt, tasks int
	winners, to          string
	older                time.Duration
}

func (s *staging) flags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&s.stage, "stage", "", "stage the rows, which nobody sees, for job `JOB`; with --task, --attempt")
	fl.IntVar(&s.task, "task", -1, "the rows are those of task `N` of the job, from 0")
	fl.IntVar(&s.attempt, "attempt", 0, "the rows are those of attempt `N` of the task")
	fl.StringVar(&s.commit, "commit", "", "make the rows of job `JOB` visible, all at once; with --tasks or --winners")
	fl.IntVar(&s.tasks, "tasks", -1, "the job has `N` tasks; the first complete attempt of each counts")
	fl.StringVar(&s.winners, "winners", "", "the attempts that count are in `FILE` (-: standard input): one number a "+
		"task, in lines")
	fl.StringVar(&s.abort, "abort", "", "remove what job `JOB` staged")
	fl.DurationVar(&s.older, "abort-older", 0, "remove jobs that staged nothing for that long: `TIME`, such as 24h")
	fl.StringVar(&s.to, "to", "", "with --stage: the table is a directory of files of this `FORMAT`")
}

// asked reports whether the load is in two phases.
func (s *staging) asked() bool {
	return s.stage != "" || s.commit != "" || s.abort != "" || s.older != 0
}

// ofRows are flags about the rows of a load, which mean nothing at the end of a job, when these are staged.
var ofRows = []string{"overwrite", "partition", "where", "opt", "dictionary", "bad-action", "bad-records"}

// misplaced returns an error if a flag was given that the phase would ignore.
func (s *staging) misplaced(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	if given("dry-run") {
		return &cli.UseError{Message: "a load in two phases has no dry run",
			Hint: "with --dry-run, and without --stage, load says what the rows would do"}
	}
	for _, name := range ofRows {
		switch {
		case !given(name):
		case s.stage == "":
			return cli.WrongUse("--%s: expected it where the rows are staged, found it at the end of the job", name)
		case strings.HasPrefix(name, "bad-"):
			return cli.WrongUse("--%s: staged rows are all committed or none: expected no --stage", name)
		}
	}
	return nil
}

// check returns an error for flags that do not go together, or for a wrong number of arguments.
func (s *staging) check(args []string) error {
	n := 0
	for _, set := range []bool{s.stage != "", s.commit != "", s.abort != "", s.older != 0} {
		if set {
			n++
		}
	}
	switch {
	case n == 0 && (s.task >= 0 || s.tasks >= 0 || s.winners != "" || s.to != ""):
		return cli.WrongUse("--task, --to, --tasks and --winners: expected --stage or --commit, too")
	case n == 0:
		return nil
	case n > 1:
		return cli.WrongUse("expected one of --stage, --commit, --abort and --abort-older, found %d", n)
	case s.stage != "" && s.task < 0:
		return cli.WrongUse("--stage: --task says whose rows they are")
	case s.stage != "" && len(args) < 2:
		return cli.WrongUse("--stage: expected a table and the rows to stage")
	case s.stage == "" && len(args) > 1:
		return cli.WrongUse("expected the table only, found %s, too: the rows were staged", args[1])
	case s.commit != "" && (s.tasks < 0) == (s.winners == ""):
		return cli.WrongUse("--commit: --tasks or --winners says which tasks the job has")
	}
	return nil
}

// place returns the directory of the table, and who changes it if it is no directory of files.
func (l *loading) place(cmd *cobra.Command, table string) (string, *stoa.Changer, error) {
	s := &l.staging
	if s.to != "" {
		return strings.TrimRight(table, "/"), nil, nil
	}
	c, err := openChanger(l.app, cmd, table)
	if err != nil && s.stage == "" && cli.WithoutTable(table) == table { // a directory, which may not be there yet
		return strings.TrimRight(table, "/"), nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	return c.Place().Dir, c, nil
}

// inPhases runs a load that stages rows, or ends a job.
func (l *loading) inPhases(cmd *cobra.Command, args []string) error {
	ctx, s := cmd.Context(), &l.staging
	if err := s.misplaced(cmd); err != nil {
		return err
	}
	if remote.Is(args[0]) {
		return fault.Unsupportedf(fault.Span{Object: cli.ShownAddress(args[0])}, "",
			"rows are staged on a disk only; load without --stage adds rows to a table at an address")
	}
	place, c, err := l.place(cmd, args[0])
	if err != nil {
		return err
	}
	switch {
	case s.stage != "":
		return l.stageRows(ctx, args, place, c)
	case s.commit != "":
		return l.commitJob(ctx, args[0], place, c)
	case s.abort != "":
		if err := stage.Abort(ctx, place, s.abort, c); err != nil {
			return err
		}
		l.app.Note("%s: job %s is aborted", args[0], s.abort)
		return nil
	}
	names, err := stage.AbortOlder(ctx, place, s.older, c)
	for _, name := range names {
		l.app.Note("%s: job %s is aborted", args[0], name)
	}
	return err
}

func (l *loading) stageRows(ctx context.Context, args []string, place string, c *stoa.Changer) error {
	s := &l.staging
	o, spec, oo, err := l.request(ctx, args[1:])
	if err != nil {
		return err
	}
	var t *stoa.Table
	if c != nil {
		t, err = openFor(l.app, ctx, c, args[1:], oo, nil)
	} else {
		t, err = source.OpenAll(l.app, ctx, args[1:], oo)
	}
	if err != nil {
		return err
	}
	defer t.Close()
	sc, err := t.ScanSchema(spec)
	if err != nil {
		return err
	}
	js := stage.Spec{To: s.to, Opts: o.Opts, Overwrite: o.Overwrite, Dictionary: o.Dictionary, Partition: o.Partition}
	if c != nil {
		if err := stage.CheckLoad(ctx, c, sc, js); err != nil {
			return err
		}
	}
	j, err := stage.Begin(ctx, place, s.stage, js)
	if err != nil {
		return err
	}
	a, err := j.Write(ctx, s.task, s.attempt, sc, t.Scan(ctx, spec),
		stoa.CreateOptions{Formats: l.app.Formats, Alloc: cli.Pool, NoCheck: l.unchecked, Parallel: l.sel.Parallel})
	if err != nil {
		return err
	}
	if l.form == "json" {
		return output.WriteSummary(l.app, a)
	}
	l.app.Note("%s: job %s, task %d, attempt %d: %s staged, %s", args[0], s.stage, s.task, s.attempt,
		display.Count(a.Rows, "row"), display.BytesText(a.Bytes))
	return nil
}

func (l *loading) commitJob(ctx context.Context, table, place string, c *stoa.Changer) error {
	s := &l.staging
	o := stage.Options{Choice: stage.Choice{Tasks: s.tasks}, Open: stoa.OpenOptions{Formats: l.app.Formats}, Changer: c}
	if s.winners != "" {
		var err error
		if o.Attempts, err = l.readWinners(s.winners); err != nil {
			return err
		}
	}
	r, err := stage.Commit(ctx, place, s.commit, o)
	if err != nil {
		return err
	}
	if l.form == "json" {
		return output.WriteSummary(l.app, r)
	}
	what := "is committed"
	if r.Repeated {
		what = "was committed before"
	}
	l.app.Note("%s: job %s %s: %s of %s, %s not used", table, s.commit, what, display.Count(r.Rows, "row"),
		display.Count(int64(r.Tasks), "task"), display.Count(int64(r.Lost), "attempt"))
	return nil
}

// readWinners reads the number of the winning attempt of each task.
func (l *loading) readWinners(name string) ([]int, error) {
	in := l.app.In
	if name != cli.Dash {
		l.app.Reads(name)
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	out, lines := []int{}, bufio.NewScanner(in)
	for lines.Scan() {
		n, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
		if err != nil || n < 0 {
			return nil, cli.WrongUse("--winners: line %d: expected the number of an attempt, found %q", len(out)+1,
				lines.Text())
		}
		out = append(out, n)
	}
	return out, lines.Err()
}

// withoutJobs returns an error if rows are staged for the table: their job would belong to whatever has its name next.
func (t *target) withoutJobs() error {
	if remote.Is(t.result.Table) { // jobs are on disks only
		return nil
	}
	jobs, err := stage.Jobs(t.Place().Dir)
	if err != nil || len(jobs) == 0 {
		return err
	}
	return fault.Invalidf("%s: rows are staged for job %s: stoa load %s --commit or --abort ends it", t.result.Table,
		jobs[0].Name, t.result.Table)
}
