package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/cmd/stoa/verbs"
	"stoa/fault"
	"stoa/internal/sqltext"
	"stoa/serve"
)

// engine runs statements that are more than a query of one table, by the program stoa-sql: a process for each, which
// reads only what lies below the places, and writes nothing.
type engine struct {
	// run runs a script, and writes the rows of its last statement as a stream of Arrow. It returns the exit status.
	run   func(ctx context.Context, script string, out, notes io.Writer) int
	turns chan struct{} // of the processes that may run at a time
}

// The limits of statements in SQL.
const (
	maxProcesses = 4         // each has about 1 GB
	maxStatement = 100 << 10 // bytes: a script is one argument of a program
	maxNamed     = 64        // tables of a statement
	describeTime = time.Minute
	runTime      = time.Hour
	maxSaid      = 16 << 10
)

func newEngine(places []string) *engine {
	return &engine{turns: make(chan struct{}, maxProcesses),
		run: func(ctx context.Context, script string, out, notes io.Writer) int {
			return verbs.Query(ctx, places, script, "arrow", out, notes)
		}}
}

// script is a statement for the engine, and what defines its tables.
type script struct{ tables, statement string }

// whole returns all of it.
func (s *script) whole() string { return s.tables + s.statement }

// empty is the statement without rows: what has their schema.
func (s *script) empty() string { return s.tables + "select * from (" + s.statement + "\n) limit 0" }

// script defines the tables of the catalogue that a statement names.
func (s *server) script(ctx context.Context, statement string) (*script, error) {
	tokens := sqltext.Lex(statement)
	for len(tokens) > 0 && tokens[len(tokens)-1].Is(";") {
		statement = statement[:tokens[len(tokens)-1].From]
		tokens = tokens[:len(tokens)-1]
	}
	if len(tokens) == 0 || len(statement) > maxStatement {
		return nil, fault.Invalidf("a statement: expected 1 to %d bytes, found %d", maxStatement, len(statement))
	}
	for _, t := range tokens {
		if t.Is(";") {
			return nil, fault.Invalidf("expected one statement, found another after byte %d", t.From)
		}
	}
	all, err := s.tables.all(ctx)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	uris := map[string]string{} // of names in lower case, as SQL has them
	moved := 0                  // by how much the statement has grown
	for _, n := range tableNames(statement, tokens) {
		name := n.parts
		t, ok, err := one(all, name)
		if err != nil && n.sure {
			return nil, err
		}
		if !ok {
			continue // one that the statement itself defines, or the engine has; else it says so
		}
		if n.first.Kind == sqltext.Literal { // which the engine would take for an address
			from, to := n.first.From+moved, n.first.To+moved
			quoted := sqltext.QuoteName(n.first.Word)
			statement = statement[:from] + quoted + statement[to:]
			moved += len(quoted) - (to - from)
		}
		key := strings.ToLower(strings.Join(name, "\x00"))
		if uri, ok := uris[key]; ok && uri != t.uri {
			return nil, fault.Invalidf("the statement names two tables that differ only in the case of %q",
				strings.Join(name, "."))
		} else if ok {
			continue
		}
		if uris[key] = t.uri; len(uris) > maxNamed {
			return nil, fault.New(fault.Limit, fault.Span{}, "", "a statement names more than %d tables", maxNamed)
		}
		define(&b, name, t.uri)
	}
	return &script{b.String(), statement}, nil
}

// define writes what makes a view of a table under a name of one to three parts.
func define(b *strings.Builder, name []string, uri string) {
	full := ""
	if len(name) == 3 {
		full = sqltext.QuoteName(name[0]) + "."
		fmt.Fprintf(b, "attach if not exists ':memory:' as %s; ", sqltext.QuoteName(name[0]))
	}
	if len(name) > 1 {
		full += sqltext.QuoteName(name[len(name)-2])
		fmt.Fprintf(b, "create schema if not exists %s; ", full)
		full += "."
	}
	full += sqltext.QuoteName(name[len(name)-1])
	fmt.Fprintf(b, "create view %s as select * from %s; ", full, sqltext.Quote(uri))
}

// before are the words and signs after which a table may stand.
var before = []string{"from", "join", ",", "(", "table", "describe", "summarize", "pivot", "pivot_wider",
	"pivot_longer", "unpivot"}

// tableName is a name in a statement, of one to three parts, that may be that of a table; sure: it is one.
type tableName struct {
	parts []string
	sure  bool
	first sqltext.Token
}

// tableNames returns the names in a statement that may be those of tables.
func tableNames(statement string, tokens []sqltext.Token) (names []tableName) {
	for i := 0; i < len(tokens); i++ {
		if i == 0 || !isOne(tokens[i-1], before) {
			continue
		}
		var name []string
		sure := isOne(tokens[i-1], before[:2])
		for k := i; k < len(tokens) && len(name) < 3; k += 2 {
			t := tokens[k]
			switch t.Kind {
			case sqltext.Word:
				name = append(name, statement[t.From:t.To])
			case sqltext.Quoted:
				name = append(name, t.Word)
			case sqltext.Literal:
				if k == i && sure {
					name = append(name, t.Word)
				}
			}
			if len(name) != (k-i)/2+1 || k+1 == len(tokens) || !tokens[k+1].Is(".") {
				break
			}
		}
		if len(name) > 0 {
			names = append(names, tableName{name, sure, tokens[i]})
		}
	}
	return names
}

func isOne(t sqltext.Token, of []string) bool {
	for _, w := range of {
		if t.Is(w) {
			return true
		}
	}
	return false
}

// schema returns the schema of a script's rows.
func (e *engine) schema(ctx context.Context, s *script) (sc *arrow.Schema, err error) {
	ctx, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	err = e.read(ctx, s.empty(), func(r *ipc.Reader) error {
		sc = r.Schema()
		return nil
	})
	return sc, err
}

// rows reads the rows of a script, of schema sc, until each returns false.
func (e *engine) rows(ctx context.Context, s *script, sc *arrow.Schema, each func(arrow.RecordBatch) bool) error {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	return e.read(ctx, s.whole(), func(r *ipc.Reader) error {
		if !r.Schema().Equal(sc) {
			return fault.New(fault.Invalid, fault.Span{}, "", "the statement gave %s, and now gives %s", sc, r.Schema())
		}
		for r.Next() {
			if !each(r.RecordBatch()) {
				return errStopped
			}
		}
		return r.Err()
	})
}

// errStopped ends reading without an error.
var errStopped = errors.New("stopped")

// read runs a script, and has work read its stream. The process has ended when it returns; a status other than 0 is an
// error, whatever was read.
func (e *engine) read(ctx context.Context, script string, work func(*ipc.Reader) error) error {
	select {
	case e.turns <- struct{}{}:
		defer func() { <-e.turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	from, to := io.Pipe()
	notes := &serve.Bounded{Most: maxSaid}
	ended := make(chan int, 1)
	go func() {
		status := e.run(ctx, script, to, notes)
		to.Close()
		ended <- status
	}()
	r, err := ipc.NewReader(from, ipc.WithAllocator(memory.DefaultAllocator))
	if err == nil {
		if err = work(r); err == nil {
			_, err = io.Copy(io.Discard, from) // its end
		}
		r.Release()
	}
	from.CloseWithError(io.ErrClosedPipe)
	if err != nil && errors.Is(err, errStopped) {
		cancel()
		<-ended
		return nil
	}
	status := <-ended
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if status != 0 {
		return engineError(status, notes.String())
	}
	return err
}

// engineError is the error of a process: its status says the class.
func engineError(status int, said string) error {
	said = strings.TrimPrefix(strings.TrimSpace(said), "stoa: ")
	switch status {
	case verbs.StatusUse:
		return fault.New(fault.Invalid, fault.Span{}, "", "%s", said)
	case verbs.StatusDamage:
		return fault.New(fault.Corrupt, fault.Span{}, "", "%s", said)
	}
	return errors.New(said)
}

// A prepared statement with values for its parameters is another one, whose handle the client gets for the first one's.

func (s *server) DoPutPreparedStatementQuery(ctx context.Context, q flightsql.PreparedStatementQuery,
	r flight.MessageReader, _ flight.MetadataWriter) ([]byte, error) {
	t, err := s.prepared(q)
	if err != nil {
		return nil, err
	}
	given := 0
	statement := cmp.Or(t.Prepared, t.Query)
	text := t.Query
	for r.Next() {
		b := r.RecordBatch()
		if given += int(b.NumRows()); given > 1 {
			return nil, grpcError(fault.Invalidf("expected the values of one execution, found %d rows", given))
		}
		if b.NumRows() == 1 {
			if text, err = withValues(statement, b, s.engine != nil); err != nil {
				return nil, grpcError(err)
			}
		}
	}
	if err := r.Err(); err != nil {
		return nil, grpcError(err)
	}
	return s.sign.seal(ticket{Query: text, Prepared: statement}), nil
}
