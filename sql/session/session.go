// Package session runs statements over tables of stoa: it opens what they name, tells scans what DuckDB's plan would
// filter anyway, and writes what comes out.
package session

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/serve"
	"stoa/sql/duck"
	"stoa/sql/engine"
	"stoa/sql/tables"
)

// Session is a database in memory over tables of stoa.
type Session struct {
	app   *verbs.App
	flags *verbs.SQLFlags
	db    *engine.Database
	set   tables.Settings
	scans int64    // bytes that all scans of a statement may hold, about; 0: no limit of their own
	names []string // of tables and schemas that were given, for completion

	opened map[tables.Ask]*tables.Source // in this session; closed with it

	// Of the statement that is running.
	mu         sync.Mutex
	ctx        context.Context
	references map[int]*reference
	next       int  // the number of the next one without one of its own
	planning   bool // references are being noted
	naming     bool // tables are given names, and not read yet
	failed     error
	noted      map[string]bool
	shown      bool  // rows were written
	file       *file // that of -o, which is not there yet; nil: nothing was written to it
}

// Open begins a session.
func Open(ctx context.Context, a *verbs.App, f *verbs.SQLFlags) (*Session, error) {
	s := &Session{app: a, flags: f, ctx: ctx, opened: map[tables.Ask]*tables.Source{}, noted: map[string]bool{}}
	settings := map[string]string{"threads": strconv.Itoa(f.Workers()), "autoinstall_known_extensions": "false",
		"autoload_known_extensions": "false"}
	s.set = tables.Settings{At: f.At, Damaged: f.Damaged, Threads: f.Workers()}
	memory, err := f.MemoryBytes()
	if err != nil {
		return nil, err
	}
	if memory > 0 { // a quarter for what is read, the rest for DuckDB
		s.scans = memory / 4
		settings["memory_limit"] = strconv.FormatInt(memory-memory/4, 10) + "B"
	}
	if len(f.Within) > 0 {
		if s.set.Within, err = serve.NewTree(f.Within); err != nil {
			return nil, err
		}
		a.Within = s.set.Within
	}
	if s.db, err = engine.Open(settings); err != nil {
		return nil, err
	}
	// As cat shows times; a script may set another zone.
	if err := s.db.Do(ctx, "SET TimeZone = 'UTC'"); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.register(); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.name(ctx); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.enclose(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// enclose keeps statements from all files but those that stoa reads below the places of --within.
func (s *Session) enclose(ctx context.Context) error {
	if s.set.Within == nil {
		return nil
	}
	for _, statement := range []string{
		"SET temp_directory = ''",            // what does not fit into memory fails
		"SET enable_external_access = false", // of DuckDB's own functions and statements
		"SET lock_configuration = true",      // else a statement could allow itself what it likes
	} {
		if err := s.db.Do(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the session.
func (s *Session) Close() {
	s.db.Close()
	for _, t := range s.opened {
		t.Close()
	}
	if s.set.Within != nil {
		s.set.Within.Close()
	}
}

func (s *Session) register() error {
	host := &duck.Host{Context: func() context.Context { return s.ctx }, Failed: s.fail, Text: verbs.Line,
		AsText: s.noteText}
	con := s.db.Connection()
	for i := range maxReferences + maxCalls {
		f := duck.Function{Name: scanName(i), Called: "stoa", Args: 1, Named: tables.Named,
			Relate: func(c duck.Call) (*duck.Relation, error) { return s.relate(i, tables.AskOf(c)) }}
		if err := host.Register(con, f); err != nil {
			return err
		}
	}
	plain := duck.Function{Name: "stoa", Args: 1, Named: tables.Named,
		Relate: func(c duck.Call) (*duck.Relation, error) { return s.relate(-1, tables.AskOf(c)) }}
	if err := host.Register(con, plain); err != nil {
		return err
	}
	for _, f := range tables.Functions(func() context.Context { return s.ctx }, &s.set) {
		if err := host.Register(con, f); err != nil {
			return err
		}
	}
	duck.Replace(s.db.Handle(), s.replace)
	return nil
}

// fail keeps the first error of a statement: DuckDB has only its text.
func (s *Session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
}

// noteText says once that a column comes as text.
func (s *Session) noteText(column string, t arrow.DataType, why string) {
	s.noteOnce("column %s (%s) is given as text: %s", column, t, why)
}

func (s *Session) noteOnce(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.noted[line] {
		s.noted[line] = true
		s.app.Note("stoa: %s", line)
	}
}

// begin forgets the last statement.
func (s *Session) begin() {
	s.references, s.next, s.planning = map[int]*reference{}, 0, true
}

// Names that stand for addresses whatever they look like begin and end so: else DuckDB takes those of its own formats.
const (
	ours    = "stoa:"
	oursEnd = ":"
)

// replace gives the function, and its argument, for a name that DuckDB does not know as a table.
func (s *Session) replace(name string) (function, argument string, err error) {
	address, ok := strings.CutPrefix(name, ours)
	if ok {
		address, ok = strings.CutSuffix(address, oursEnd)
	}
	if !ok && !s.isAddress(name) {
		return "", "", nil
	}
	if !ok {
		address = name
	}
	i := s.next
	s.next++
	if i >= maxReferences {
		return "stoa", address, nil
	}
	return scanName(i), address, nil
}

// isAddress reports whether a name is a place and not a table whose name is misspelt.
func (s *Session) isAddress(name string) bool {
	return strings.ContainsAny(name, "/#.*@\\") || s.set.Exists(s.ctx, name)
}

// relate is the relation of reference i; -1: of none that is noted.
func (s *Session) relate(i int, ask tables.Ask) (*duck.Relation, error) {
	source, err := s.open(ask)
	if err != nil {
		return nil, err
	}
	if source.Timeless && !s.naming {
		s.noteOnce("--at means nothing to %s: its format keeps no past", ask.Address)
	}
	if s.planning && i >= 0 {
		s.references[i] = &reference{ask: ask, source: source}
	}
	if ref := s.references[i]; ref != nil && ref.ask == ask && ref.planned == 1 {
		return source.Relation(s.ctx, ref.where, ref.empty)
	}
	return source.Relation(s.ctx, nil, false)
}

// open opens a table, once in a session.
func (s *Session) open(ask tables.Ask) (*tables.Source, error) {
	if t := s.opened[ask]; t != nil {
		return t, nil
	}
	t, err := tables.Open(s.ctx, ask, &s.set)
	if err != nil {
		return nil, err
	}
	s.app.Reads(ask.Address)
	s.opened[ask] = t
	return t, nil
}

// name makes views of the tables that --table and --attach give names to.
func (s *Session) name(ctx context.Context) error {
	for _, t := range s.flags.Tables {
		name, address, ok := strings.Cut(t, "=")
		if !ok || name == "" || address == "" {
			return verbs.WrongUsef("--table %s: expected NAME=ADDRESS", t)
		}
		if err := s.view(ctx, quoteName(name), address); err != nil {
			return err
		}
		s.names = append(s.names, name)
	}
	for _, t := range s.flags.Attach {
		name, place, ok := strings.Cut(t, "=")
		if !ok || name == "" || place == "" {
			return verbs.WrongUsef("--attach %s: expected NAME=PLACE", t)
		}
		if err := s.attach(ctx, name, place); err != nil {
			return err
		}
	}
	return nil
}

// view makes a view of a table, which is opened here: what is wrong with it is said at once.
func (s *Session) view(ctx context.Context, name, address string) error {
	s.begin()
	s.naming = true
	defer func() { s.naming = false }()
	s.failed = nil
	err := s.db.Do(ctx, "CREATE VIEW "+name+" AS FROM "+quoteName(ours+address+oursEnd))
	if s.failed != nil {
		return s.failed
	}
	return err
}

// attach makes a schema of the tables of a place.
func (s *Session) attach(ctx context.Context, name, place string) error {
	if err := s.db.Do(ctx, "CREATE SCHEMA "+quoteName(name)); err != nil {
		return err
	}
	taken := map[string]bool{} // names, in lower case
	o := stoa.OpenOptions{Formats: verbs.Formats()}
	if s.set.Within != nil {
		o.Tree = s.set.Within
	}
	for e, err := range stoa.List(ctx, place, o) {
		if err != nil && e.Place == "" {
			return err
		}
		if err != nil {
			s.app.Warn("stoa: %s", verbs.Line(err))
			continue
		}
		uri, _ := stoa.Named(e, o)
		table := tableName(e)
		if taken[strings.ToLower(table)] {
			s.app.Warn("stoa: %s: another table of %s has this name; --table gives it one of its own", uri, place)
			continue
		}
		if err := s.view(ctx, quoteName(name)+"."+quoteName(table), uri); err != nil {
			s.app.Warn("stoa: %s: %s", uri, verbs.Line(err))
			continue
		}
		s.names = append(s.names, name+"."+table)
		taken[strings.ToLower(table)] = true
	}
	if len(taken) == 0 {
		return fault.Invalidf("--attach %s: no table could be opened in %s", name, place)
	}
	return nil
}

// tableName is what a table of a place is called in its schema: its name there, or the file's name without its
// extension.
func tableName(e format.Entry) string {
	if e.Table != "" {
		return e.Table
	}
	base := filepath.Base(strings.TrimRight(e.Place, "/"))
	if ext := filepath.Ext(base); ext != "" && ext != base {
		base = strings.TrimSuffix(base, ext)
	}
	return base
}

// health are the losses and findings of all tables that were read.
func (s *Session) health() (places []string, losses []region.Loss, findings []region.Finding) {
	for ask, t := range s.opened {
		places = append(places, ask.Address)
		losses = append(losses, t.Losses...)
		findings = append(findings, t.Table.Findings()...)
	}
	return places, losses, findings
}

// reason is the error that a statement ended with: ours, where DuckDB has only the text of it.
func (s *Session) reason(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var e *engine.Error
	switch {
	case err == nil:
		return nil
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case s.failed != nil && !errors.Is(s.failed, context.Canceled):
		return s.failed
	case errors.As(err, &e) && e.Wrong():
		return verbs.WrongUsef("%s", asWritten(e.Text))
	case e != nil:
		return &engine.Error{Kind: e.Kind, Text: asWritten(e.Text)}
	}
	return err
}
