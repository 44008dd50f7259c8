package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stoa"
	"stoa/fault"
	"stoa/internal/parts"
	"stoa/store"
)

// Result says what a commit made visible.
type Result struct {
	Job   string `json:"job"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
	Tasks int    `json:"tasks"`
	// attempts that were complete and not chosen
	Lost  int      `json:"lost"`
	Files []string `json:"files,omitempty"` // of a directory
	// Segment is what a load of a table that is changed in place added.
	Segment string `json:"segment,omitempty"`
	// Repeated: an earlier commit of this job, which was interrupted, had made the rows visible already.
	Repeated bool `json:"repeated,omitempty"`
}

// Options are the options of a commit.
type Options struct {
	Choice
	Open stoa.OpenOptions // Formats and Limits
	// Changer changes the table of a job that is a load.
	Changer *stoa.Changer
}

// Commit makes the rows of a job visible, all at once, and removes what it staged. If it fails, nothing has changed and
// it may be repeated; if its process dies, too: the next commit of the job finishes it, or finds that it was finished.
func Commit(ctx context.Context, place, name string, o Options) (Result, error) {
	j, err := Find(place, name)
	if err != nil {
		tidy(ctx, place)
	}
	if errors.Is(err, errNoJob) && wasCommitted(ctx, place, name) {
		return Result{Job: name, Repeated: true}, nil
	}
	if err != nil {
		return Result{}, err
	}
	unlock, err := lock(ctx, j.Place)
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	if !isFull(j.dir) {
		return Result{}, fault.Invalidf("%s: job %s was committed or aborted meanwhile", j.Place, name)
	}
	out, err := j.commit(ctx, o)
	if err != nil {
		return out, err
	}
	out.Job = name
	return out, j.remove()
}

// wasCommitted reports whether the manifest of a directory says that a job is done.
func wasCommitted(ctx context.Context, place, name string) bool {
	m, err := parts.ReadManifest(ctx, store.Local{}, filepath.ToSlash(place))
	return err == nil && m != nil && slices.Contains(m.Jobs, name)
}

func (j *Job) commit(ctx context.Context, o Options) (Result, error) {
	won, lost, err := j.winners(o.Choice)
	if err != nil {
		return Result{}, err
	}
	out := Result{Tasks: len(won), Lost: lost}
	for _, a := range won {
		out.Rows += a.Rows
		out.Bytes += a.Bytes
	}
	if j.Spec.To == "" {
		return j.load(ctx, o, won, out)
	}
	if err := j.restore(); err != nil {
		return out, err
	}
	if out.Repeated, err = j.committed(ctx, nil); err != nil || out.Repeated {
		return out, err
	}
	d := &directory{job: j, out: filepath.Join(j.dir, "out"), options: o.Open}
	if err := d.build(ctx, won); err != nil {
		return out, err
	}
	out.Files = d.added
	return out, d.show()
}

// oldName is where the old directory is for a moment, on file systems that cannot swap two names.
const oldName = "old"

// restore undoes a swap that was interrupted between its two steps.
func (j *Job) restore() error {
	old := filepath.Join(j.dir, oldName)
	if _, err := os.Lstat(old); err != nil {
		return nil
	}
	if _, err := os.Lstat(j.Place); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(old, j.Place)
}

// directory is the new state of a table: links to the files that it keeps and to the staged ones, and a manifest.
type directory struct {
	job      *Job
	out      string
	options  stoa.OpenOptions
	manifest parts.Manifest
	exists   bool     // there is a table, or an empty directory
	linked   []string // entries of the existing directory
	next     int      // number of the next file
	added    []string
}

func (d *directory) build(ctx context.Context, won []Attempt) error {
	if err := os.RemoveAll(d.out); err != nil { // of a commit that was interrupted
		return err
	}
	if err := os.Mkdir(d.out, 0o777); err != nil {
		return err
	}
	d.manifest = parts.Manifest{Version: parts.ManifestVersion, Format: d.job.Spec.To}
	if err := d.keep(ctx, won); err != nil {
		return err
	}
	empty := !slices.ContainsFunc(won, func(a Attempt) bool { return a.Rows > 0 }) && len(d.manifest.Files) == 0
	for i, a := range won {
		if a.Rows == 0 && (!empty || i > 0) { // an empty table has one file, which has its columns
			continue
		}
		name := fmt.Sprintf("part-%05d%s", d.next, strings.TrimPrefix(a.File, "rows"))
		if err := link(d.job.path(a), filepath.Join(d.out, name)); err != nil {
			return err
		}
		d.next++
		d.added = append(d.added, name)
		d.manifest.Files = append(d.manifest.Files, parts.ManifestFile{Name: name, Rows: a.Rows, Bytes: a.Bytes})
	}
	d.manifest.Jobs = append(d.manifest.Jobs, d.job.Name)
	if n := len(d.manifest.Jobs) - mostJobs; n > 0 {
		d.manifest.Jobs = d.manifest.Jobs[n:]
	}
	if err := writeJSON(filepath.Join(d.out, parts.ManifestName), d.manifest); err != nil {
		return err
	}
	return store.SyncDir(d.out)
}

// mostJobs is how many names of jobs a manifest has.
const mostJobs = 100

// keep takes over what is in the directory, or refuses to.
func (d *directory) keep(ctx context.Context, won []Attempt) error {
	place := d.job.Place
	entries, err := os.ReadDir(place)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	d.exists = true
	if len(entries) == 0 {
		return nil
	}
	old, err := parts.ReadManifest(ctx, store.Local{}, filepath.ToSlash(place))
	if err != nil {
		return err
	}
	if old == nil {
		return fault.Invalidf("%s: the directory has no %s, so that no job wrote it: a job writes to a new or empty "+
			"directory, or to one that jobs wrote", place, parts.ManifestName)
	}
	if d.job.Spec.Overwrite {
		d.manifest.Jobs = old.Jobs
		return nil
	}
	if old.Format != d.job.Spec.To {
		return fault.Invalidf("%s: expected files of the table's format %s, found %s", place, old.Format, d.job.Spec.To)
	}
	if err := d.sameColumns(ctx, won); err != nil {
		return err
	}
	d.manifest.Jobs, d.manifest.Files = old.Jobs, old.Files
	for _, f := range old.Files {
		var n int
		if _, err := fmt.Sscanf(f.Name, "part-%d", &n); err == nil {
			d.next = max(d.next, n+1)
		}
	}
	for _, e := range entries {
		if e.Name() == parts.ManifestName {
			continue
		}
		d.linked = append(d.linked, e.Name())
		if err := link(filepath.Join(place, e.Name()), filepath.Join(d.out, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// sameColumns compares the columns of the table with those of the rows to be added, as both are read.
func (d *directory) sameColumns(ctx context.Context, won []Attempt) error {
	if len(won) == 0 {
		return nil
	}
	table, err := d.columns(ctx, d.job.Place)
	if err != nil {
		return err
	}
	rows, err := d.columns(ctx, d.job.path(won[0]))
	if err != nil {
		return err
	}
	if table != rows {
		return fault.Invalidf("%s: expected the table's columns %s, found %s", d.job.Place, table, rows)
	}
	return nil
}

func (d *directory) columns(ctx context.Context, place string) (string, error) {
	t, err := stoa.Open(ctx, place, stoa.OpenOptions{Formats: d.options.Formats, Limits: d.options.Limits})
	if err != nil {
		return "", err
	}
	defer t.Close()
	return columnsOf(t.Schema()), nil
}

// show puts the new directory in the place of the old one.
func (d *directory) show() error {
	place := d.job.Place
	defer store.SyncDir(filepath.Dir(place))
	if !d.exists {
		return os.Rename(d.out, place)
	}
	if err := store.Exchange(d.out, place); err != nil {
		return d.swap()
	}
	// Whoever added a file meanwhile, and was no job, must not lose it.
	if err := d.unchanged(d.out); err != nil {
		return errors.Join(err, store.Exchange(d.out, place))
	}
	return nil
}

// swap is an exchange on file systems that have none: for a moment there is no table.
func (d *directory) swap() error {
	place, old := d.job.Place, filepath.Join(d.job.dir, oldName)
	if err := os.Rename(place, old); err != nil {
		return err
	}
	err := d.unchanged(old)
	if err == nil {
		err = os.Rename(d.out, place)
	}
	if err != nil {
		return errors.Join(err, os.Rename(old, place))
	}
	return nil
}

// unchanged compares the entries of the old directory with those that were linked.
func (d *directory) unchanged(old string) error {
	if d.job.Spec.Overwrite {
		return nil
	}
	entries, err := os.ReadDir(old)
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if e.Name() != parts.ManifestName {
			names = append(names, e.Name())
		}
	}
	if !slices.Equal(names, d.linked) {
		return fault.Invalidf("%s: it changed during the commit: expected %d entries, found %d", d.job.Place,
			len(d.linked), len(names))
	}
	return nil
}

// link makes hard links of a file, or of the files of a directory.
func link(from, to string) error {
	st, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return os.Link(from, to)
	}
	if err := os.Mkdir(to, 0o777); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := link(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return store.SyncDir(to)
}
