package convert

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/pieces"
	"stoa/store"
	"stoa/store/remote"
)

// stateFile records, in the directory of the output, which tables are done. The whole file is written after the first
// table of a run and at the end of the run; in between, one line per table is added to the journal.
const stateFile = ".stoa-convert.json"

// allState is the content of the state file.
type allState struct {
	Stoa     string        `json:"stoa"` // "convert-all"
	Settings []string      `json:"settings"`
	Done     []doneTable   `json:"done"`
	Failed   []failedTable `json:"failed,omitempty"` // of the last run
	Finished bool          `json:"finished"`         // all tables are done

	// From is the directory in which the first run was started: relative sources are relative to it.
	From       string `json:"from,omitempty"`
	Assembling bool   `json:"assembling,omitempty"` // the tables are being made one place

	kept    bool           // a state file exists, from this run or an earlier one
	at      map[string]int // index in Done by the key of a source; if it occurs several times, the last one
	cwd     string
	journal journal
	saved   time.Time
}

// openState reads the state of an earlier run, or begins a new one.
func openState(ctx context.Context, a *cli.App, dir string, resume bool, settings []string) (*allState, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	st := &allState{Stoa: "convert-all", Settings: settings, at: map[string]int{}, From: cwd, cwd: cwd}
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
	previous := allState{cwd: cwd}
	outside := func(d doneTable) bool { return !filepath.IsLocal(d.Output) }
	unread := json.Unmarshal(b, &previous)
	if unread == nil {
		previous.From = cmp.Or(previous.From, cwd)
		if err := previous.replay(dir, b); err != nil {
			return nil, err
		}
	}
	if unread != nil || previous.Stoa != st.Stoa || slices.ContainsFunc(previous.Done, outside) {
		return nil, &cli.UseError{Message: name + " is not what an earlier run has left",
			Hint: "choose another directory"}
	}
	if !slices.Equal(previous.Settings, settings) && // they may have been moved together
		!slices.Equal(sameRoots(previous.Settings, previous.From), sameRoots(settings, cwd)) {
		return nil, &cli.UseError{Message: "the earlier run had other flags: " +
			strings.Join(differing(previous.Settings, settings),
				", "), Hint: "--resume needs the same flags"}
	}
	previous.kept = true
	return &previous, nil
}

// globQuoted returns a pattern that matches exactly name.
func globQuoted(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

// differing returns the settings that are in only one of two lists.
func differing(a, b []string) (out []string) {
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	for _, s := range b {
		if !slices.Contains(a, s) {
			out = append(out, "now "+s)
		}
	}
	return out
}

// find returns what an earlier run has done for a table, or nil.
func (st *allState) find(t oneTable) *doneTable {
	if i, ok := st.at[st.keyOf(t)]; ok {
		return &st.Done[i]
	}
	return nil
}

// keyOf returns the key of a table: that of its source or, if the run was moved together with what it reads, that which
// the source had there.
func (st *allState) keyOf(t oneTable) string {
	key := sourceKey(t.source, st.cwd)
	if _, ok := st.at[key]; ok {
		return key
	}
	moved := sourceKey(t.source, st.From)
	if _, ok := st.at[moved]; ok {
		return moved
	}
	return key
}

// sourceKey returns what is the same for all spellings of a source, which is relative to dir.
func sourceKey(source, dir string) string {
	place := cli.WithoutTable(source)
	table := source[len(place):]
	switch {
	case strings.HasPrefix(place, store.RootsMark): // several places: see sameRoots
	case remote.Is(place):
		place = strings.TrimRight(place, "/")
	case filepath.IsAbs(place):
		place = filepath.Clean(place)
	default:
		place = filepath.Join(dir, place)
	}
	return place + table
}

// sameRoots returns settings with a spelling of the roots that is the same for all.
func sameRoots(settings []string, dir string) []string {
	const key = "roots="
	settings = slices.Clone(settings)
	for i, s := range settings {
		if roots, ok := strings.CutPrefix(s, key); ok {
			list := strings.Split(roots, "\x00")
			for k := range list {
				list[k] = sourceKey(list[k], dir)
			}
			settings[i] = key + strings.Join(list, "\x00")
		}
	}
	return settings
}

// forget removes a table from those that are done.
func (st *allState) forget(t oneTable) {
	delete(st.at, st.keyOf(t))
	st.Finished = false
}

// add adds a table to those that are done, replacing any earlier entry.
func (st *allState) add(d doneTable) {
	st.at[sourceKey(d.Source, st.From)] = len(st.Done)
	st.Done = append(st.Done, d)
}

// compact drops entries that were forgotten or replaced.
func (st *allState) compact() {
	var current []doneTable
	for i, d := range st.Done {
		key := sourceKey(d.Source, st.From)
		if at, ok := st.at[key]; ok && at == i {
			st.at[key] = len(current)
			current = append(current, d)
		}
	}
	st.Done = current
}

// record saves a table that is done: the first one of a run in a newly written state file, which drops what the run
// forgot, the others in the journal.
func (st *allState) record(ctx context.Context, a *cli.App, dir string, d doneTable) error {
	if st.cwd != st.From {
		d.Source = sourceKey(d.Source, st.cwd)
	}
	st.add(d)
	st.Finished = false // until the run ends
	if st.journal.of == "" {
		return st.save(ctx, a, dir)
	}
	if remote.Is(dir) { // an object cannot be appended to
		if time.Since(st.saved) > saveEvery {
			return st.save(ctx, a, dir)
		}
		st.journal.earlier = true // there is something to save
		return nil
	}
	return st.journal.append(dir, st.Failed, d)
}

// saveEvery is how often the whole state is written at an address, where there is no journal.
const saveEvery = 20 * time.Second

// save writes the whole state file, which makes the journal void, and removes the journal.
func (st *allState) save(ctx context.Context, a *cli.App, dir string) error {
	st.compact()
	b, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return err
	}
	b = append(b, '\n')
	err = output.PutDoc(a, ctx, &output.OutputFlags{File: filepath.Join(dir, stateFile)}, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	st.kept, st.saved = true, time.Now()
	st.journal.begin(dir, b, len(st.Failed))
	return nil
}

// replay adds the entries of the journal to the state, which was read from a state file with this content.
func (st *allState) replay(dir string, state []byte) error {
	st.at = map[string]int{}
	for i, d := range st.Done {
		st.at[sourceKey(d.Source, st.From)] = i
	}
	lines, found, err := readJournal(dir, state)
	if err != nil {
		return err
	}
	st.journal.earlier = found
	for _, l := range lines {
		st.Finished = false
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

// keepNames gives tables that are done their existing output names, which no other table may get.
func (st *allState) keepNames(tables []oneTable, ext string) {
	withoutExt := func(name string) string { return strings.ToLower(strings.TrimSuffix(name, ext)) }
	taken := map[string]bool{}
	for i := range tables {
		if previous := st.find(tables[i]); previous != nil {
			tables[i].output = strings.TrimSuffix(previous.Output, ext) + ext
		}
	}
	for _, d := range st.Done {
		taken[withoutExt(d.Output)] = true
	}
	for i, t := range tables {
		if st.find(t) != nil {
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
