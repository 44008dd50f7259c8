package convert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

	Assembling bool `json:"assembling,omitempty"` // the tables are being made one place

	kept    bool           // a state file exists, from this run or an earlier one
	at      map[string]int // index of a source in Done; if it occurs several times, the last one
	journal journal
	saved   time.Time
}

// openState reads the state of an earlier run, or begins a new one.
func openState(ctx context.Context, a *cli.App, dir string, resume bool, settings []string) (*allState, error) {
	st := &allState{Stoa: "convert-all", Settings: settings, at: map[string]int{}}
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
	var previous allState
	outside := func(d doneTable) bool { return !filepath.IsLocal(d.Output) }
	unread := json.Unmarshal(b, &previous)
	if unread == nil {
		if err := previous.replay(dir, b); err != nil {
			return nil, err
		}
	}
	if unread != nil || previous.Stoa != st.Stoa || slices.ContainsFunc(previous.Done, outside) {
		return nil, &cli.UseError{Message: name + " is not what an earlier run has left",
			Hint: "choose another directory"}
	}
	if !slices.Equal(previous.Settings, settings) {
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
	if i, ok := st.at[t.source]; ok {
		return &st.Done[i]
	}
	return nil
}

// forget removes a table from those that are done.
func (st *allState) forget(t oneTable) {
	delete(st.at, t.source)
	st.Finished = false
}

// add adds a table to those that are done, replacing any earlier entry.
func (st *allState) add(d doneTable) {
	st.at[d.Source] = len(st.Done)
	st.Done = append(st.Done, d)
}

// compact drops entries that were forgotten or replaced.
func (st *allState) compact() {
	var current []doneTable
	for i, d := range st.Done {
		if at, ok := st.at[d.Source]; ok && at == i {
			st.at[d.Source] = len(current)
			current = append(current, d)
		}
	}
	st.Done = current
}

// record saves a table that is done: the first one of a run in a newly written state file, which drops what the run
// forgot, the others in the journal.
func (st *allState) record(ctx context.Context, a *cli.App, dir string, d doneTable) error {
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
		st.at[d.Source] = i
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

// stamper returns stamps of places: sizes and times of all files in and below them. It computes each stamp once.
type stamper struct {
	tree store.Tree
	of   map[string]string
}

// stamp returns the combined stamp of places.
func (s *stamper) stamp(ctx context.Context, places []string) string {
	key := strings.Join(places, "\x00")
	if s.of[key] == "" {
		sum := sha256.New()
		for _, p := range places {
			if info, err := s.tree.Stat(ctx, p); err == nil && !info.Dir {
				fmt.Fprintf(sum, "%q %s\n", p, info.Stamp)
			} else {
				s.below(ctx, sum, p, 0)
			}
		}
		s.of[key] = hex.EncodeToString(sum.Sum(nil)[:16])
	}
	return s.of[key]
}

func (s *stamper) below(ctx context.Context, w io.Writer, dir string, depth int) {
	const maxDepth = 64
	if depth > maxDepth {
		return
	}
	for info, err := range s.tree.List(ctx, dir) {
		switch {
		case err != nil:
			fmt.Fprintf(w, "%q %v\n", info.Name, err)
		case info.Dir:
			s.below(ctx, w, info.Name, depth+1)
		default:
			fmt.Fprintf(w, "%q %s\n", info.Name, info.Stamp)
		}
	}
}
