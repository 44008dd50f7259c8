package session

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/format"
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

// writing is a statement that writes a file with one of stoa's writers.
type writing struct {
	query  string
	path   string
	format string
	opts   map[string]string
	// unclear: nothing says in which format.
	unclear bool
}

// write runs a query and writes its rows as a table.
func (s *Session) write(ctx context.Context, w *writing) error {
	if w.unclear {
		return verbs.WrongUsef("%s: its name does not say which format it is to have: COPY (QUERY) TO %s (FORMAT NAME)",
			w.path, quote(w.path))
	}
	text := numbered(w.query, lex(w.query))
	s.plan(ctx, text)
	s.next, s.planning = 0, false
	r, done, err := s.run(ctx, text)
	if err != nil {
		return err
	}
	defer done()
	sc, err := r.Schema()
	if err != nil {
		return s.reason(err)
	}
	begin := time.Now()
	out, err := verbs.CreateTable(s.app, ctx, w.path, sc, stoa.CreateOptions{Formats: s.app.Formats, To: w.format,
		Opts: w.opts, Parallel: s.set.Threads})
	if err != nil {
		return err
	}
	for b, err := range r.Batches(sc) {
		if err == nil {
			err = out.Write(ctx, b)
		}
		if err != nil {
			return errors.Join(s.reason(err), out.Abort(ctx))
		}
	}
	sum, err := out.Close(ctx)
	if err != nil {
		return errors.Join(s.reason(err), out.Abort(ctx))
	}
	s.app.Note("%s: %d rows, %d bytes, %s", w.path, sum.Rows, sum.Bytes, time.Since(begin).Round(10*time.Millisecond))
	return nil
}

// writes recognizes the statements that write a file of a format that stoa writes, and DuckDB does not:
// COPY (QUERY) TO 'x.cfile', COPY TABLE TO 'x.cfile' and CREATE TABLE 'x.cfile' AS QUERY.
func writes(a *verbs.App, text string, t []token) *writing {
	switch {
	case len(t) > 3 && t[0].is("copy"):
		return copies(a, text, t)
	case len(t) > 4 && t[0].is("create"):
		return creates(a, text, t)
	}
	return nil
}

func creates(a *verbs.App, text string, t []token) *writing {
	i := 1
	if t[i].is("or") && t[i+1].is("replace") {
		i += 2
	}
	if i+3 >= len(t) || !t[i].is("table") || t[i+1].kind != literal && t[i+1].kind != quoted || !t[i+2].is("as") {
		return nil
	}
	w := &writing{query: text[t[i+2].to:], path: t[i+1].word}
	if stoa.ByExtension(a.Formats, w.path) == nil {
		// DuckDB would make a table in memory that has this name, and nobody would notice.
		w.unclear = t[i+1].kind == literal && strings.ContainsAny(w.path, "./")
		if !w.unclear {
			return nil
		}
	}
	return w
}

func copies(a *verbs.App, text string, t []token) *writing {
	depth, to := 0, -1
	for i, x := range t {
		switch {
		case x.is("("):
			depth++
		case x.is(")"):
			depth--
		case depth == 0 && x.is("to") && i+1 < len(t) && t[i+1].kind == literal:
			to = i
		}
		if to > 0 {
			break
		}
	}
	if to < 0 {
		return nil
	}
	w := &writing{query: text[t[0].to:t[to].from], path: t[to+1].word}
	if t[1].is("(") {
		w.query = text[t[1].to:t[to-1].from]
	} else {
		w.query = "FROM " + w.query
	}
	if !w.options(text, t[to+2:]) {
		return nil
	}
	defer w.hyphens(a)
	switch fm := stoa.ByExtension(a.Formats, w.path); {
	case w.format == "stoa" && fm != nil:
		w.format = fm.Name
	case w.format == "" && fm != nil && !slices.Contains(duckdbs, strings.ToLower(path.Ext(w.path))):
		w.format = fm.Name
	case w.format == "" || a.Format(w.format) == nil || slices.Contains(duckdbs, "."+w.format):
		return nil
	}
	return w
}

// hyphens gives options their names where these have hyphens, which names in SQL without quotes cannot have.
func (w *writing) hyphens(a *verbs.App) {
	fm := a.Format(w.format)
	if fm == nil {
		return
	}
	for name, value := range w.opts {
		hyphened := strings.ReplaceAll(name, "_", "-")
		known := slices.ContainsFunc(fm.WriteKeys, func(k format.OptionKey) bool { return k.Name == hyphened })
		if known && hyphened != name {
			delete(w.opts, name)
			w.opts[hyphened] = value
		}
	}
}

// duckdbs are the files that DuckDB writes itself.
var duckdbs = []string{".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson"}

// options reads (NAME VALUE, …); false: they are not of this form.
func (w *writing) options(text string, t []token) bool {
	w.opts = map[string]string{}
	if len(t) == 0 {
		return true
	}
	if !t[0].is("(") || !t[len(t)-1].is(")") {
		return false
	}
	for i := 1; i < len(t)-1; {
		name := t[i].word
		from := i + 1
		for i++; i < len(t)-1 && !t[i].is(","); i++ {
		}
		if from == i {
			return false
		}
		value := text[t[from].from:t[i-1].to]
		if t[from].kind != word && t[from].kind != sign {
			value = t[from].word
		}
		if name == "format" {
			w.format = strings.ToLower(value)
		} else {
			w.opts[name] = value
		}
		i++
	}
	return true
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
