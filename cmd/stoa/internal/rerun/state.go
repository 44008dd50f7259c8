package rerun

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stoa/cmd/stoa/internal/catchup"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/pieces"
	"stoa/store/remote"
)

// stateFile records, in the directory of the output, which tables are done. The whole file is written after the first
// table of a run and at the end of the run; in between, one line per table is added to the journal.
const stateFile = ".stoa-convert.json"

// State is the content of the state file.
type State struct {
	Stoa     string   `json:"stoa"` // "convert-all"
	Settings []string `json:"settings"`
	Done     []Table  `json:"done"`
	Failed   []Failed `json:"failed,omitempty"` // of the last run
	Finished bool     `json:"finished"`         // all tables are done

	// From is the directory in which the first run was started: relative sources are relative to it.
	From       string `json:"from,omitempty"`
	Assembling bool   `json:"assembling,omitempty"` // the tables are being made one place

	Roots []string `json:"roots,omitempty"` // what the first run read, as SourceKey spells it
	Out   string   `json:"out,omitempty"`   // where it wrote
	// Next are tables that were about to appear: a run that was killed then does not know whether they did.
	Next []Table `json:"next,omitempty"`

	Kept    bool           // a state file exists, from this run or an earlier one
	at      map[string]int // index in Done by the key of a source; if it occurs several times, the last one
	cwd     string
	roots   []string // what this run reads
	journal journal
}

// OpenState reads the state of an earlier run, or begins a new one, which reads roots.
func OpenState(ctx context.Context, a *cli.App, dir string, resume bool, settings []string, roots ...string) (*State,
	error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	st := &State{Stoa: "convert-all", Settings: settings, at: map[string]int{}, From: cwd, cwd: cwd,
		Out: SourceKey(dir, cwd)}
	for _, r := range roots {
		st.Roots = append(st.Roots, SourceKey(r, cwd))
	}
	st.roots = st.Roots
	name := filepath.Join(dir, stateFile)
	b, err := a.ReadFile(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && remote.Is(dir): // a store has no directories
		return st, nil
	case errors.Is(err, fs.ErrNotExist):
		begun, err := filepath.Glob(filepath.Join(globQuoted(dir), "*", pieces.JournalFile))
		if err == nil && len(begun) > 0 && !resume {
			return nil, pieces.Held(dir)
		}
		return st, os.MkdirAll(dir, 0o777)
	case err != nil:
		return nil, err
	case !resume:
		return nil, pieces.Held(dir)
	}
	previous := State{cwd: cwd, roots: st.Roots}
	outside := func(d Table) bool { return !filepath.IsLocal(d.Output) }
	unread := json.Unmarshal(b, &previous)
	if unread == nil {
		previous.From = cmp.Or(previous.From, cwd)
		if err := previous.replay(ctx, a, dir, b); err != nil {
			return nil, err
		}
	}
	if unread != nil || previous.Stoa != st.Stoa ||
		slices.ContainsFunc(slices.Concat(previous.Done, previous.Next), outside) {
		return nil, &cli.UseError{Message: name + " is not what an earlier run has left",
			Hint: "choose another directory"}
	}
	if err := previous.sameRun(st, remote.Shown(dir)); err != nil {
		return nil, err
	}
	previous.Kept = true
	return &previous, nil
}

// globQuoted returns a pattern that matches exactly name.
func globQuoted(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

// sameRun returns an error if a run has other settings than the one that wrote the state, or reads something else.
func (st *State) sameRun(now *State, dir string) error {
	const key = "roots=" // earlier releases have them, if there are several, among the settings
	st.Settings = slices.DeleteFunc(st.Settings, func(s string) bool {
		list, ok := strings.CutPrefix(s, key)
		if ok {
			for _, r := range strings.Split(list, "\x00") {
				st.Roots = append(st.Roots, SourceKey(r, st.From))
			}
		}
		return ok
	})
	if !slices.Equal(st.Settings, now.Settings) {
		return &cli.UseError{Message: "the earlier run had other flags: " +
			strings.Join(Differing(st.Settings, now.Settings), ", "), Hint: "--resume needs the same flags"}
	}
	out := cmp.Or(st.Out, now.Out)
	if len(st.Roots) > 0 && len(now.Roots) > 0 && !slices.EqualFunc(st.Roots, now.Roots, func(was, is string) bool {
		return was == is || cli.Resolved(was) == cli.Resolved(is) || cli.Beside(was, out) == cli.Beside(is, now.Out)
	}) {
		return &cli.UseError{Message: dir + " was written from " + cli.InFlags(strings.Join(st.Roots, " ")) +
			", not from " + cli.InFlags(strings.Join(now.Roots, " ")),
			Hint: "choose another directory for another place"}
	}
	return nil
}

// Find returns what an earlier run has done for a table, or nil.
func (st *State) Find(source string) *Table {
	if i, ok := st.at[st.KeyOf(source)]; ok {
		return &st.Done[i]
	}
	return nil
}

// Announced returns the table as an interrupted run was about to publish it, or nil.
func (st *State) Announced(source string) *Table {
	key := st.KeyOf(source)
	for i := range st.Next {
		if SourceKey(st.Next[i].Source, st.From) == key {
			return &st.Next[i]
		}
	}
	return nil
}

// KeyOf returns the key of a source: that which it had in the first run, if what is read was moved or is named by
// another path.
func (st *State) KeyOf(source string) string {
	key := SourceKey(source, st.cwd)
	for i, root := range st.roots {
		rest, ok := strings.CutPrefix(key, root)
		if ok && i < len(st.Roots) && (rest == "" || strings.ContainsAny(rest[:1], "/#") || root == "/") {
			return st.Roots[i] + rest
		}
	}
	if _, ok := st.at[key]; !ok && len(st.Roots) == 0 { // of an earlier release, which knew where it was started
		moved := SourceKey(source, st.From)
		if _, err := os.Lstat(cli.WithoutTable(moved)); errors.Is(err, fs.ErrNotExist) {
			return moved
		}
	}
	return key
}

// Forget removes a table from those that are done.
func (st *State) Forget(source string) {
	delete(st.at, st.KeyOf(source))
	st.Finished = false
}

// add adds a table to those that are done, replacing any earlier entry.
func (st *State) add(d Table) {
	st.at[SourceKey(d.Source, st.From)] = len(st.Done)
	st.Done = append(st.Done, d)
	st.Drop(SourceKey(d.Source, st.From))
}

// compact drops entries that were forgotten or replaced.
func (st *State) compact() {
	var current []Table
	for i, d := range st.Done {
		key := SourceKey(d.Source, st.From)
		if at, ok := st.at[key]; ok && at == i {
			st.at[key] = len(current)
			current = append(current, d)
		}
	}
	st.Done = current
}

// Announce saves a table that is about to appear, as record does.
func (st *State) Announce(ctx context.Context, a *cli.App, dir string, d Table) error {
	st.name(&d)
	st.Drop(SourceKey(d.Source, st.From))
	st.Next = append(st.Next, d)
	return st.write(ctx, a, dir, journalLine{Next: &d})
}

// name gives a table the source that the first run had.
func (st *State) name(d *Table) {
	if key := st.KeyOf(d.Source); key != SourceKey(d.Source, st.From) {
		d.Source = key
	}
}

// Drop drops a table from those that are about to appear.
func (st *State) Drop(key string) {
	for i := range st.Next {
		if SourceKey(st.Next[i].Source, st.From) == key { // there is no other one
			st.Next[i] = st.Next[len(st.Next)-1]
			st.Next = st.Next[:len(st.Next)-1]
			return
		}
	}
}

// Record saves a table that is done: the first one of a run in a newly written state file, which drops what the run
// forgot, the others in the journal.
func (st *State) Record(ctx context.Context, a *cli.App, dir string, d Table) error {
	st.name(&d)
	st.add(d)
	return st.write(ctx, a, dir, journalLine{Done: &d})
}

func (st *State) write(ctx context.Context, a *cli.App, dir string, line journalLine) error {
	st.Finished = false // until the run ends
	if st.journal.of == "" || len(st.journal.text) > longJournal {
		return st.Save(ctx, a, dir)
	}
	if remote.Is(dir) {
		st.journal.put = func(b []byte) error { return put(ctx, a, filepath.Join(dir, journalFile), b) }
	}
	return st.journal.append(dir, st.Failed, line)
}

func put(ctx context.Context, a *cli.App, name string, b []byte) error {
	return output.PutDoc(a, ctx, &output.OutputFlags{File: name}, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// Save writes the whole state file, which makes the journal void, and removes the journal.
func (st *State) Save(ctx context.Context, a *cli.App, dir string) error {
	st.compact()
	b, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	if err := put(ctx, a, filepath.Join(dir, stateFile), b); err != nil {
		return err
	}
	st.Kept = true
	st.journal.begin(dir, b, len(st.Failed))
	return nil
}

// Finish saves the state at the end of a run. An object of the journal is of no use then.
func (st *State) Finish(ctx context.Context, a *cli.App, dir string) error {
	logged := st.journal.pending()
	err := st.Save(ctx, a, dir)
	if err != nil || !logged || !remote.Is(dir) {
		return err
	}
	home, err := catchup.At(ctx, a.Remote(), dir, a.SingleWriter)
	if err != nil {
		return err
	}
	return home.Remove(ctx, journalFile)
}

// replay adds the entries of the journal to the state, which was read from a state file with this content.
func (st *State) replay(ctx context.Context, a *cli.App, dir string, state []byte) error {
	st.at = map[string]int{}
	for i, d := range st.Done {
		st.at[SourceKey(d.Source, st.From)] = i
	}
	lines, found, err := readJournal(ctx, a, dir, state)
	if err != nil {
		return err
	}
	st.journal.earlier = found
	for _, l := range lines {
		st.Finished = false
		if l.Next != nil {
			st.Drop(SourceKey(l.Next.Source, st.From))
			st.Next = append(st.Next, *l.Next)
		}
		if l.Done != nil {
			st.add(*l.Done)
		}
		if l.Failed != nil {
			st.Failed = append(st.Failed, *l.Failed)
		}
	}
	st.compact()
	return nil
}

// Current returns the tables that are done, each once.
func (st *State) Current() (out []Table) {
	for i, d := range st.Done {
		if at, ok := st.at[SourceKey(d.Source, st.From)]; ok && at == i {
			out = append(out, d)
		}
	}
	return out
}

// Removed drops a table that was removed on purpose from those that are done.
func (st *State) Removed(d Table) { delete(st.at, SourceKey(d.Source, st.From)) }

// Close closes the journal.
func (st *State) Close() { st.journal.close() }

// Pending reports whether there is a journal, to be merged into the state file.
func (st *State) Pending() bool { return st.journal.pending() }
