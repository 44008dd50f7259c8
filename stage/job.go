// Package stage writes a table in two phases, for jobs of several processes: each task of a job stages its rows, which
// nobody sees, and one commit makes those of all tasks visible together. A task may be tried several times, also at the
// same time: of each task the rows of one attempt are committed, and the others are removed. A job that is not
// committed is aborted, by its name or by its age.
//
// The table is a directory of files of one format, which a manifest lists, or one that a format changes in place. What
// is staged lies beside it, in the directory .NAME.stoa-stage, which every reader ignores and which is gone when no job
// is left.
package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/parts"
	"stoa/store"
)

// Spec is what all attempts of a job have in common. The first attempt determines it; others with another one are
// refused.
type Spec struct {
	// To is the format of the files; "": the table is changed in place, by a load.
	To         string                 `json:"to,omitempty"`
	Opts       map[string]string      `json:"opts,omitempty"` // of the writer
	Overwrite  bool                   `json:"overwrite,omitempty"`
	Dictionary string                 `json:"dictionary,omitempty"` // of a load
	Partition  format.PartitionValues `json:"partition,omitempty"`  // of a load
}

func (s Spec) equal(o Spec) bool {
	same := func(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }
	return s.To == o.To && s.Overwrite == o.Overwrite && s.Dictionary == o.Dictionary && maps.Equal(s.Opts, o.Opts) &&
		maps.EqualFunc(s.Partition, o.Partition, same)
}

// Job is a load that several processes write.
type Job struct {
	Name  string
	Place string // the table's directory
	Spec  Spec
	dir   string
}

const (
	stageSuffix = ".stoa-stage"
	jobFile     = "job.json"
	attemptFile = "attempt.json"
	goneMark    = ".gone-" // begins the names of directories that are being made or removed
)

var jobName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// root returns the directory of all jobs of a table.
func root(place string) string {
	dir, base := filepath.Split(strings.TrimRight(filepath.Clean(place), string(filepath.Separator)))
	return filepath.Join(dir, "."+base+stageSuffix)
}

// placeOf makes a place absolute, and refuses what has no directory beside it.
func placeOf(place string) (string, error) {
	full, err := filepath.Abs(place)
	if err != nil {
		return "", err
	}
	if to, err := filepath.EvalSymlinks(full); err == nil {
		full = to
	}
	if filepath.Dir(full) == full {
		return "", fault.Invalidf("%s: a root directory is no table", place)
	}
	return full, nil
}

// checkName refuses names that are no names of directories.
func checkName(name string) error {
	if !jobName.MatchString(name) {
		return fault.Invalidf("expected a job's name of letters, digits, '.', '_' and '-', found %q", name)
	}
	return nil
}

// Begin begins a job, or joins it. A job that was committed is not begun again.
func Begin(ctx context.Context, place, name string, s Spec) (*Job, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	place, err := placeOf(place)
	if err != nil {
		return nil, err
	}
	if m, err := parts.ReadManifest(ctx, store.Local{}, filepath.ToSlash(place)); err != nil {
		return nil, err
	} else if m != nil && slices.Contains(m.Jobs, name) {
		return nil, fault.Invalidf("%s: job %s has been committed", place, name)
	}
	j := &Job{Name: name, Place: place, Spec: s, dir: filepath.Join(root(place), name)}
	for range 10 { // a commit of another job may sweep the new directory away
		if err = j.begin(); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	was, err := find(place, name)
	if err != nil {
		return nil, err
	}
	if !was.Spec.equal(s) {
		return nil, fault.Invalidf("%s: job %s was begun with other options: %s, now %s", place, name, was.Spec, s)
	}
	return was, nil
}

func (s Spec) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// begin makes the job's directory, unless another process has.
func (j *Job) begin() error {
	if _, err := os.Stat(filepath.Join(j.dir, jobFile)); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(j.dir), 0o777); err != nil {
		return err
	}
	tmp := filepath.Join(filepath.Dir(j.dir), fmt.Sprintf("%s%x", goneMark, rand.Uint64()))
	if err := os.Mkdir(tmp, 0o777); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := writeJSON(filepath.Join(tmp, jobFile), j.Spec); err != nil {
		return err
	}
	if err := os.Rename(tmp, j.dir); err != nil && !isFull(j.dir) {
		return err
	}
	return nil
}

// isFull reports whether there is a job already.
func isFull(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, jobFile))
	return err == nil
}

var errNoJob = fault.Invalidf("there is no job")

// find returns a job that was begun.
func find(place, name string) (*Job, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	j := &Job{Name: name, Place: place, dir: filepath.Join(root(place), name)}
	err := readJSON(filepath.Join(j.dir, jobFile), &j.Spec)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w %s: nothing was staged, or it was committed or aborted", place, errNoJob, name)
	}
	return j, err
}

// Find returns a job that was begun and is neither committed nor aborted.
func Find(place, name string) (*Job, error) {
	place, err := placeOf(place)
	if err != nil {
		return nil, err
	}
	return find(place, name)
}

// Pending is a job that is neither committed nor aborted.
type Pending struct {
	Name string
	Last time.Time // when something was last written
}

// Jobs lists the jobs of a table.
func Jobs(place string) ([]Pending, error) {
	place, err := placeOf(place)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(root(place))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []Pending
	for _, e := range entries {
		if e.IsDir() && jobName.MatchString(e.Name()) {
			out = append(out, Pending{e.Name(), lastWrite(filepath.Join(root(place), e.Name()))})
		}
	}
	return out, err
}

// lastWrite returns the newest time of change below a directory. What disappears meanwhile does not count.
func lastWrite(dir string) (last time.Time) {
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		return nil
	})
	return last
}

// lock holds the jobs of a table: commits and aborts happen one after the other. Attempts are staged meanwhile.
func lock(ctx context.Context, place string) (unlock func(), err error) {
	dir := root(place)
	for {
		f, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		if ok, err := waitLock(ctx, f, dir); err != nil {
			f.Close()
			return nil, err
		} else if ok {
			return func() {
				sweep(dir)
				f.Close()
			}, nil
		}
		f.Close() // another process removed the directory, and one more made it again
	}
}

// sweep removes what processes that died left half made or half removed, and the directory of the jobs if it is empty.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), goneMark) {
			os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	os.Remove(dir)
}

// tidy sweeps when there is nothing else to do.
func tidy(ctx context.Context, place string) {
	if unlock, err := lock(ctx, place); err == nil {
		unlock()
	}
}

const (
	lockPause = 50 * time.Millisecond
	lockWait  = time.Minute
)

// waitLock locks the open directory, and reports whether it still is the one by that name.
func waitLock(ctx context.Context, f *os.File, dir string) (bool, error) {
	for end := time.Now().Add(lockWait); !store.TryLock(f); {
		if time.Now().After(end) {
			return false, fault.Invalidf("%s: another job is being committed or aborted", dir)
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(lockPause):
		}
	}
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Stat(dir)
	return err == nil && os.SameFile(mine, now), err
}

// Abort removes everything that a job staged. Attempts that are still being written fail. c changes the table of a
// load; nil for other jobs. A job whose interrupted commit had made the rows visible is an error of class Invalid.
func Abort(ctx context.Context, place, name string, c *stoa.Changer) error {
	j, err := Find(place, name)
	if err != nil {
		tidy(ctx, place)
		return err
	}
	unlock, err := lock(ctx, j.Place)
	if err != nil {
		return err
	}
	defer unlock()
	if done, err := j.committed(ctx, c); err != nil || done {
		if done {
			err = errors.Join(j.remove(), fault.Invalidf("%s: job %s has been committed; its remains are removed",
				j.Place, name))
		}
		return err
	}
	return j.remove()
}

// AbortOlder aborts all jobs of a table for which nothing was written for that long, and returns their names.
func AbortOlder(ctx context.Context, place string, age time.Duration, c *stoa.Changer) (out []string, err error) {
	all, err := Jobs(place)
	for _, p := range all {
		if err != nil || time.Since(p.Last) < age {
			continue
		}
		if err = Abort(ctx, place, p.Name, c); err == nil {
			out = append(out, p.Name)
		}
	}
	return out, err
}

// committed reports whether a commit of the job was interrupted after the rows had become visible.
func (j *Job) committed(ctx context.Context, c *stoa.Changer) (bool, error) {
	if j.Spec.To == "" {
		_, done, err := j.loaded(ctx, c)
		if errors.Is(err, errUnclear) { // whoever aborts knows
			err = nil
		}
		return done, err
	}
	m, err := parts.ReadManifest(ctx, store.Local{}, filepath.ToSlash(j.Place))
	return m != nil && slices.Contains(m.Jobs, j.Name), err
}

// remove removes the job at once, as others see it, and what earlier removals left.
func (j *Job) remove() error {
	gone := filepath.Join(root(j.Place), goneMark+j.Name)
	if err := os.RemoveAll(gone); err != nil {
		return err
	}
	if err := os.Rename(j.dir, gone); err != nil {
		return err
	}
	err := os.RemoveAll(gone)
	if err != nil { // a process still wrote to it
		err = os.RemoveAll(gone)
	}
	return err
}

func writeJSON(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	tmp := name + ".tmp"
	f, err := os.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return os.Rename(tmp, name)
}

func readJSON(name string, v any) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fault.Corruptf(fault.Span{Object: name}, "", "expected JSON of a job: %v", err)
	}
	return nil
}

// attemptName is the directory of an attempt.
func attemptName(task, attempt int) string { return fmt.Sprintf("task-%05d-attempt-%d", task, attempt) }
