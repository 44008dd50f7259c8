package session

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/format"
)

// writing is a statement that writes a file with one of stoa's writers.
type writing struct {
	query  string
	path   string
	format string
	opts   map[string]string
	// Of CREATE TABLE:
	create  bool
	replace bool   // OR REPLACE
	lenient bool   // IF NOT EXISTS
	wrong   string // why nothing can be written; "": it can
}

// write runs a query and writes its rows as a table.
func (s *Session) write(ctx context.Context, w *writing) error {
	if w.wrong != "" {
		return verbs.WrongUsef("%s: %s", w.path, w.wrong)
	}
	if s.set.Within != nil {
		return verbs.WrongUsef("%s: with --within nothing is written", w.path)
	}
	if w.create && !w.replace && s.set.Exists(ctx, w.path) {
		if w.lenient {
			s.app.Note("%s: it is there, and stays as it is", w.path)
			return nil
		}
		return verbs.WrongUsef("%s: it is there already: CREATE OR REPLACE TABLE, or COPY, puts another in its place",
			w.path)
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

// creates recognizes CREATE [OR REPLACE] TABLE [IF NOT EXISTS] 'x.cfile' AS QUERY. What begins so and goes on otherwise
// is wrong: DuckDB would make a table in memory that has this name, and nobody would notice.
func creates(a *verbs.App, text string, t []token) *writing {
	w, i := &writing{create: true}, 1
	take := func(words ...string) bool {
		for k, word := range words {
			if i+k >= len(t) || !t[i+k].is(word) {
				return false
			}
		}
		i += len(words)
		return true
	}
	w.replace = take("or", "replace")
	passing := take("temp") || take("temporary")
	if !take("table") {
		return nil
	}
	w.lenient = take("if", "not", "exists")
	if i+1 >= len(t) || t[i].kind != literal && t[i].kind != quoted || w.replace && w.lenient {
		return nil
	}
	w.path = t[i].word
	known, query := stoa.ByExtension(a.Formats, w.path) != nil, t[i+1].is("as")
	switch {
	case t[i].kind == quoted && (passing || !query || !known),
		!known && !strings.ContainsAny(w.path, "./"), t[i+1].is("."):
		return nil
	case passing:
		w.wrong = "a file is not temporary: CREATE TABLE " + quote(w.path) + " AS QUERY"
	case !query:
		w.wrong = "its rows come from a query: CREATE TABLE " + quote(w.path) + " AS QUERY"
	case !known:
		w.wrong = formatless(w.path)
	}
	w.query = text[t[i+1].to:]
	return w
}

// formatless is what is wrong with a name that says nothing about a format.
func formatless(path string) string {
	return "its name does not say which format it is to have: COPY (QUERY) TO " + quote(path) + " (FORMAT NAME)"
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
	case w.format == "stoa":
		w.wrong = formatless(w.path)
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
