package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stoa/cmd/stoa/verbs"
	"stoa/sql/engine"
)

// Script runs statements one after another, until one fails.
func (s *Session) Script(ctx context.Context, script string) error {
	all, _ := Statements(script)
	if len(all) == 0 {
		return verbs.WrongUsef("there is no statement in it")
	}
	for _, st := range all {
		if err := s.Statement(ctx, st); err != nil {
			return s.end(ctx, err)
		}
	}
	if s.flags.ToFile() && s.file == nil {
		return verbs.WrongUsef("-o %s: no statement gives rows", s.flags.File)
	}
	return s.end(ctx, nil)
}

// Statement runs one statement.
func (s *Session) Statement(ctx context.Context, text string) error {
	s.ctx, s.failed = ctx, nil
	tokens := lex(text)
	if w := writes(s.app, text, tokens); w != nil {
		return s.write(ctx, w)
	}
	text = numbered(text, tokens)
	s.references, s.planning = nil, false
	explained := explains(text, lex(text))
	query := text
	if explained != nil {
		query = explained.query
	}
	if plannable(lex(query)) {
		s.plan(ctx, query)
		if err := s.reason(nil); s.failed != nil || err != nil {
			return errors.Join(err, s.failed)
		}
	}
	s.next, s.planning = 0, false
	if explained != nil {
		return s.explain(ctx, text, explained.form)
	}
	r, done, err := s.run(ctx, text)
	if err != nil {
		return err
	}
	defer done()
	return s.show(ctx, r)
}

// run prepares and runs a statement; done ends it.
func (s *Session) run(ctx context.Context, text string) (*engine.Result, func(), error) {
	for _, t := range s.opened {
		t.Read.Store(0)
	}
	s.set.Memory = s.scans / max(1, int64(len(s.references))) // all may be read at the same time
	defer s.watch()()
	st, err := s.prepare(ctx, text)
	if err != nil {
		return nil, nil, s.reason(err)
	}
	r, err := st.Run(ctx)
	if err != nil {
		st.Close()
		return nil, nil, s.reason(err)
	}
	return r, func() { r.Close(); st.Close() }, nil
}

// prepare makes a statement ready whose columns all have types of Arrow's: those that have none are given as text.
func (s *Session) prepare(ctx context.Context, text string) (*engine.Statement, error) {
	first := s.next
	st, err := s.db.Prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	columns := st.Columns()
	i := slices.IndexFunc(columns, func(c engine.Column) bool { return c.NoArrow != "" })
	if i < 0 {
		return st, nil
	}
	st.Close()
	s.next = first // the same references once more
	if st, err = s.db.Prepare(ctx, asTexts(text, columns)); err != nil {
		return nil, verbs.WrongUsef("column %s: Arrow has no type for %s: cast it to VARCHAR", columns[i].Name,
			columns[i].NoArrow)
	}
	for _, c := range columns {
		if c.NoArrow != "" {
			s.noteOnce("column %s is given as text: Arrow has no type for %s", c.Name, c.NoArrow)
		}
	}
	return st, nil
}

// asTexts is a query with text for the columns whose types Arrow does not have.
func asTexts(query string, columns []engine.Column) string {
	var wanted, names []string
	for i, c := range columns {
		name := fmt.Sprintf("c%d", i)
		names = append(names, name)
		if c.NoArrow != "" {
			name = "CAST(" + name + " AS VARCHAR)"
		}
		wanted = append(wanted, name+" AS "+quoteName(c.Name))
	}
	return "SELECT " + strings.Join(wanted, ", ") + " FROM (" + query + "\n) t(" + strings.Join(names, ", ") + ")"
}

// Texts are the values of the first column of a query's rows, as text.
func (s *Session) Texts(ctx context.Context, query string) (out []string, err error) {
	r, done, err := s.run(ctx, query)
	if err != nil {
		return nil, err
	}
	defer done()
	sc, err := r.Schema()
	if err != nil {
		return nil, s.reason(err)
	}
	for b, err := range r.Batches(sc) {
		if err != nil {
			return nil, s.reason(err)
		}
		for i := range int(b.NumRows()) {
			out = append(out, strings.Clone(b.Column(0).ValueStr(i))) // the batch goes
		}
	}
	return out, nil
}

// show writes the rows of a result.
func (s *Session) show(ctx context.Context, r *engine.Result) error {
	if !r.HasRows() {
		if n := r.Changed(); n >= 0 {
			s.app.Detail("%d rows", n)
		}
		return s.reason(r.Drain())
	}
	sc, err := r.Schema()
	if err != nil {
		return s.reason(err)
	}
	if err := s.onlyOne(); err != nil {
		return err
	}
	form, err := s.flags.RowForm(s.app)
	if err != nil {
		return err
	}
	if s.flags.ToFile() {
		w, err := verbs.BeginFile(s.app, ctx, &s.flags.OutputFlags, form, sc, r.Batches(sc))
		if err == nil {
			s.file = &file{end: func(ctx context.Context) error { return verbs.EndFile(s.app, ctx, w) }, drop: w.Abort}
		}
		return s.reason(err)
	}
	err = verbs.WriteRows(s.app, ctx, &s.flags.OutputFlags, form, sc, r.Batches(sc))
	if errors.Is(err, verbs.ErrEnough) {
		return err
	}
	return s.reason(err)
}

// plannable reports whether a statement may be one that reads tables.
func plannable(t []token) bool {
	if len(t) == 0 {
		return false
	}
	first := t[0]
	for _, w := range []string{"select", "with", "from", "values", "create", "insert", "copy", "table", "(", "update",
		"delete", "merge", "pivot", "unpivot"} {
		if first.is(w) {
			return true
		}
	}
	return false
}
