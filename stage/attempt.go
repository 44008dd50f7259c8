package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/fault"
	"stoa/internal/sorted"
)

// Attempt is what one attempt of a task staged.
type Attempt struct {
	Task    int    `json:"task"`
	Attempt int    `json:"attempt"`
	Rows    int64  `json:"rows"`
	Bytes   int64  `json:"bytes"`
	Schema  string `json:"schema"` // the columns, as text: all attempts have the same
	File    string `json:"file"`   // in the directory of the attempt
	Checked bool   `json:"checked"`
}

// mostTasks bounds the numbers of tasks and attempts, which are parts of names.
const mostTasks = 1_000_000

// Write stages the rows of one attempt of a task. After an error nothing is staged.
func (j *Job) Write(ctx context.Context, task, attempt int, sc *arrow.Schema,
	rows iter.Seq2[arrow.RecordBatch, error], o stoa.CreateOptions) (a Attempt, err error) {
	if task < 0 || attempt < 0 || task >= mostTasks || attempt >= mostTasks {
		return a, fault.Invalidf("expected a task and an attempt from 0 to %d, found %d and %d", mostTasks-1, task,
			attempt)
	}
	dir := filepath.Join(j.dir, attemptName(task, attempt))
	if err := os.Mkdir(dir, 0o777); errors.Is(err, fs.ErrExist) {
		return a, fault.Invalidf("%s: attempt %d of task %d of job %s was staged already, or is being staged", j.Place,
			attempt, task, j.Name)
	} else if err != nil {
		return a, j.ended(err)
	}
	a = Attempt{Task: task, Attempt: attempt, Schema: columnsOf(sc)}
	if err := j.write(ctx, dir, &a, sc, rows, o); err != nil {
		return a, errors.Join(j.ended(err), os.RemoveAll(dir))
	}
	return a, nil
}

// ended adds that the job is gone, if it is, to an error.
func (j *Job) ended(err error) error {
	if !isFull(j.dir) {
		return fault.Invalidf("%s: job %s was committed or aborted meanwhile (%v)", j.Place, j.Name, err)
	}
	return err
}

func (j *Job) write(ctx context.Context, dir string, a *Attempt, sc *arrow.Schema,
	rows iter.Seq2[arrow.RecordBatch, error], o stoa.CreateOptions) error {
	if o.To, o.Opts = j.Spec.To, j.Spec.Opts; o.To == "" { // rows for a load
		o.To, o.Opts = "arrow", nil
	}
	a.File = "rows" + extension(o)
	w, err := stoa.Create(ctx, filepath.Join(dir, a.File), sc, o)
	if err != nil {
		return err
	}
	for b, err := range rows {
		if err == nil {
			err = w.Write(ctx, b)
		}
		if err != nil {
			return errors.Join(err, w.Abort(ctx))
		}
		a.Rows += b.NumRows()
	}
	s, err := w.Close(ctx)
	if err != nil {
		return errors.Join(err, w.Abort(ctx))
	}
	a.Bytes, a.Checked = s.Bytes, s.Checked
	return writeJSON(filepath.Join(dir, attemptFile), a)
}

// extension returns the usual extension of a format.
func extension(o stoa.CreateOptions) string {
	formats := o.Formats
	if formats == nil {
		formats = stoa.Formats
	}
	for _, f := range formats {
		if f.Name == o.To && len(f.Extensions) > 0 {
			return f.Extensions[0]
		}
	}
	return ""
}

// columnsOf returns names, types and nullability as text, without metadata.
func columnsOf(sc *arrow.Schema) string {
	var out []string
	for _, f := range sc.Fields() {
		null := ""
		if f.Nullable {
			null = "?"
		}
		out = append(out, fmt.Sprintf("%q %s%s", f.Name, f.Type, null))
	}
	return strings.Join(out, ", ")
}

// complete returns the attempts that were staged whole, by task and attempt.
func (j *Job) complete() (out []Attempt, err error) {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), "task-") {
			continue
		}
		var a Attempt
		err := readJSON(filepath.Join(j.dir, e.Name(), attemptFile), &a)
		if errors.Is(err, fs.ErrNotExist) { // it is being written, or its process died
			continue
		}
		if err != nil {
			return nil, err
		}
		if a.Task < 0 || a.Attempt < 0 || attemptName(a.Task, a.Attempt) != e.Name() ||
			a.File != filepath.Base(a.File) {
			return nil, fault.Corruptf(fault.Span{Object: filepath.Join(j.dir, e.Name(), attemptFile)}, "task",
				"expected the attempt of its directory, found task %d, attempt %d, file %q", a.Task, a.Attempt, a.File)
		}
		out = append(out, a)
	}
	sorted.By(out, func(a, b Attempt) int {
		if a.Task != b.Task {
			return a.Task - b.Task
		}
		return a.Attempt - b.Attempt
	})
	return out, nil
}

// Choice says which attempts are committed.
type Choice struct {
	Tasks int // tasks 0 to Tasks-1 must have been staged; of each, the first complete attempt counts
	// Attempts names the attempt of each task, for those who know better; Tasks is then not used.
	Attempts []int
}

// winners returns the chosen attempts, in the order of the tasks.
func (j *Job) winners(c Choice) (out []Attempt, lost int, err error) {
	all, err := j.complete()
	if err != nil {
		return nil, 0, err
	}
	tasks := c.Tasks
	if c.Attempts != nil {
		tasks = len(c.Attempts)
	}
	if tasks < 0 || tasks > mostTasks {
		return nil, 0, fault.Invalidf("expected 0 to %d tasks, found %d", mostTasks, tasks)
	}
	found := make([]*Attempt, tasks)
	for i := range all {
		a := &all[i]
		if a.Task >= tasks {
			return nil, 0, fault.Invalidf("%s: expected tasks 0 to %d of job %s, found task %d", j.Place, tasks-1,
				j.Name, a.Task)
		}
		if found[a.Task] == nil && (c.Attempts == nil || c.Attempts[a.Task] == a.Attempt) {
			found[a.Task] = a
		}
	}
	for i, a := range found {
		switch {
		case a == nil && c.Attempts != nil:
			return nil, 0, fault.Invalidf("%s: attempt %d of task %d of job %s was not staged", j.Place, c.Attempts[i],
				i, j.Name)
		case a == nil:
			return nil, 0, fault.Invalidf("%s: task %d of job %s was not staged", j.Place, i, j.Name)
		case a.Schema != found[0].Schema:
			return nil, 0, fault.Invalidf("%s: task %d of job %s has other columns than task 0: %s; expected %s",
				j.Place, i, j.Name, a.Schema, found[0].Schema)
		}
		out = append(out, *a)
	}
	return out, len(all) - len(out), nil
}

// path returns where the rows of an attempt are.
func (j *Job) path(a Attempt) string {
	return filepath.Join(j.dir, attemptName(a.Task, a.Attempt), a.File)
}
