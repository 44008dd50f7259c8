package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"stoa/cmd/stoa/verbs"
	"stoa/serve"
	"stoa/store"
)

const (
	maxAnswer = 256 << 10 // bytes of an answer: models have no use for more
	maxNotes  = 16 << 10  // bytes of what is said on standard error
	maxRows   = 1000
	maxQuery  = 8 << 10
	maxWords  = 64 << 10 // bytes of the arguments of a call
	maxCalls  = 4        // at once; others wait
	memory    = "512MiB"
)

// runner runs a command line over a tree; it returns the exit status.
type runner func(ctx context.Context, tree store.Tree, args []string, out, notes io.Writer) int

// server has the tools of one client.
type server struct {
	tree  *serve.Tree
	run   runner
	query func(ctx context.Context, places []string, query, form string, out, notes io.Writer) int
	calls chan struct{} // has room for as many as may run
}

const instructions = `stoa reads the columnar files of Apache Kudu, CarbonData, Parquet, RedFile and Trevni, of Arrow,
CSV and JSON, and of lakes. Begin with ls, which lists the tables of a place. A table is named as ls names it: PATH or
PATH#TABLE. Answers are JSON. Where all went well that is all; else a second text begins with the status: 3 means that
damage was met, and says what is missing (of diff: that the tables differ); with 1 or 2 the call failed, and it says
why. verify finds damage; sql joins and sums;
explain says what a predicate would read. Nothing is written.`

func newServer(tree *serve.Tree, run runner) *sdk.Server {
	s := &server{tree, run, verbs.Query, make(chan struct{}, maxCalls)}
	m := sdk.NewServer(&sdk.Implementation{Name: "stoa", Version: verbs.Version()},
		&sdk.ServerOptions{Instructions: instructions})
	addTools(s, m)
	addSQL(s, m)
	return m
}

type (
	placeArgs struct {
		Path string `json:"path,omitempty" jsonschema:"a file or directory below the places; all of them if left out"`
	}
	tableArgs struct {
		Table string `json:"table" jsonschema:"PATH or PATH#TABLE, as ls names it"`
	}
	rowsArgs struct {
		tableArgs
		Columns []string `json:"columns,omitempty" jsonschema:"all if left out; a.b is a field, \"a,b\" one name"`
		Where   string   `json:"where,omitempty" jsonschema:"such as: price > 3 and day >= date '2024-02-29'"`
		Rows    int      `json:"rows,omitempty" jsonschema:"how many rows at most, 10 if left out, up to 1000"`
	}
	countArgs struct {
		tableArgs
		Where string `json:"where,omitempty" jsonschema:"a predicate, such as: price > 3"`
	}
	explainArgs struct {
		tableArgs
		Columns []string `json:"columns,omitempty" jsonschema:"columns to read, all if left out"`
		Where   string   `json:"where,omitempty" jsonschema:"a predicate, such as: price > 3"`
		Analyze bool     `json:"analyze,omitempty" jsonschema:"run the scan, and show what it did"`
	}
	keyArgs struct {
		tableArgs
		Key     []string `json:"key" jsonschema:"the values of the key's columns, in their order"`
		Columns []string `json:"columns,omitempty" jsonschema:"columns to read, all if left out"`
	}
	verifyArgs struct {
		Path string `json:"path,omitempty" jsonschema:"a file or directory; all served places if left out"`
		Deep bool   `json:"deep,omitempty" jsonschema:"decode every value too, which takes longer"`
	}
	diffArgs struct {
		A string `json:"a" jsonschema:"a table, as ls names it"`
		B string `json:"b" jsonschema:"the table that it is compared with"`
	}
	sqlArgs struct {
		Query string `json:"query" jsonschema:"DuckDB's SQL; a table is PATH or PATH#TABLE in single quotes"`
	}
	findingArgs struct {
		Code string `json:"code" jsonschema:"the code of a finding of verify, such as cfile.block.checksum"`
	}
)

func addTools(s *server, m *sdk.Server) {
	add(s, m, "ls", "List the tables below a place: formats, rows, sizes, columns.",
		func(in placeArgs) (line, error) { return s.places("ls", in.Path) })
	add(s, m, "schema", "Show the columns of a table and their types.",
		func(in tableArgs) (line, error) { return line{verb: "schema"}.of(in.Table) })
	add(s, m, "head", "Read rows of a table, from its beginning or those for which a predicate is true.",
		func(in rowsArgs) (line, error) {
			n := in.Rows
			if n == 0 {
				n = 10
			}
			if n < 0 || n > maxRows {
				return line{}, fmt.Errorf("rows: expected 1 to %d, found %d", maxRows, n)
			}
			return line{verb: "cat"}.flag("limit", fmt.Sprint(n)).rows(in.Columns, in.Where).of(in.Table)
		})
	add(s, m, "count", "Count the rows of a table, or those for which a predicate is true.",
		func(in countArgs) (line, error) { return line{verb: "count"}.rows(nil, in.Where).of(in.Table) })
	add(s, m, "get", "Look rows up by their key.",
		func(in keyArgs) (line, error) {
			l := line{verb: "get"}.rows(in.Columns, "")
			for _, k := range in.Key {
				l = l.flag("key", k)
			}
			return l.of(in.Table)
		})
	add(s, m, "stats", "Show sizes, encodings, nulls, min and max values of every column.",
		func(in tableArgs) (line, error) {
			return line{verb: "stats"}.flag("damaged", "null-cells").of(in.Table)
		})
	add(s, m, "explain", "Show what a scan with this predicate would read of a table, what it would skip, and why.",
		func(in explainArgs) (line, error) {
			l := line{verb: "explain"}.rows(in.Columns, in.Where)
			if in.Analyze {
				l = l.flag("analyze", "true")
			}
			return l.of(in.Table)
		})
	add(s, m, "describe", "Show which structure every byte of a file belongs to.",
		func(in tableArgs) (line, error) { return line{verb: "describe"}.of(in.Table) })
	add(s, m, "verify", "Find damage: each finding has a code, file, offset, and the rows concerned.",
		func(in verifyArgs) (line, error) {
			l, err := s.places("verify", in.Path)
			if in.Deep {
				l = l.flag("deep", "true")
			}
			return l, err
		})
	add(s, m, "history", "Show which points in a Kudu table's past can be read.",
		func(in tableArgs) (line, error) { return line{verb: "history"}.of(in.Table) })
	add(s, m, "diff", "Compare two tables, also of different formats, row by row.",
		func(in diffArgs) (line, error) { return line{verb: "diff"}.of(in.A, in.B) })
	add(s, m, "finding", "Explain the code of a finding: what happened, what it costs, what to do next.",
		func(in findingArgs) (line, error) { return line{verb: "finding", words: []string{in.Code}}, nil })
}

// addSQL adds the tool that runs a query, which is run by a program of its own.
func addSQL(s *server, m *sdk.Server) {
	sdk.AddTool(m, readOnly("sql", "Run a query in SQL over tables; the program stoa-sql must be installed."),
		func(ctx context.Context, _ *sdk.CallToolRequest, in sqlArgs) (*sdk.CallToolResult, any, error) {
			if in.Query == "" || len(in.Query) > maxQuery {
				return nil, nil, fmt.Errorf("query: expected 1 to %d bytes, found %d", maxQuery, len(in.Query))
			}
			return s.answer(ctx, func(ctx context.Context, out, notes io.Writer) int {
				return s.query(ctx, s.tree.Places(), in.Query, "json", out, notes)
			})
		})
}

func readOnly(name, what string) *sdk.Tool {
	no := false
	return &sdk.Tool{Name: name, Description: what,
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &no}}
}

// add adds a tool whose arguments make a command line.
func add[In any](s *server, m *sdk.Server, name, what string, lineOf func(In) (line, error)) {
	tool := readOnly(name, what)
	sdk.AddTool(m, tool, func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		l, err := lineOf(in)
		if err != nil {
			return nil, nil, err
		}
		return s.call(ctx, l)
	})
}

// line is a command line.
type line struct {
	verb         string
	flags, names []string // names are of tables and places
	words        []string // other arguments
}

func (l line) flag(name, value string) line {
	l.flags = append(l.flags, "--"+name+"="+value)
	return l
}

func (l line) rows(columns []string, where string) line {
	if len(columns) > 0 {
		l = l.flag("columns", strings.Join(columns, ","))
	}
	if where != "" {
		l = l.flag("where", where)
	}
	return l
}

func (l line) of(names ...string) (line, error) {
	l.names = append(l.names, names...)
	return l, nil
}

func (s *server) places(verb, path string) (line, error) {
	if path == "" {
		return line{verb: verb}.of(s.tree.Places()...)
	}
	return line{verb: verb}.of(path)
}

func (l line) args() []string {
	args := append([]string{l.verb, "--format=json"}, l.flags...)
	if l.verb != "finding" {
		args = append(args, "--memory="+memory)
	}
	return append(append(append(args, "--"), l.names...), l.words...)
}

// call runs a command line.
func (s *server) call(ctx context.Context, l line) (*sdk.CallToolResult, any, error) {
	n := 0
	for _, word := range l.args() {
		n += len(word) + 1
	}
	if n > maxWords {
		return nil, nil, fmt.Errorf("arguments: expected at most %d bytes, found %d", maxWords, n)
	}
	for _, name := range l.names {
		if err := s.tree.Check(name); err != nil {
			return nil, nil, err
		}
	}
	return s.answer(ctx, func(ctx context.Context, out, notes io.Writer) int {
		return s.run(ctx, s.tree, l.args(), out, notes)
	})
}

// answer answers with the document that do writes, its status, and what it said besides.
func (s *server) answer(ctx context.Context, do func(ctx context.Context, out, notes io.Writer) int) (
	*sdk.CallToolResult, any, error) {
	select {
	case s.calls <- struct{}{}:
		defer func() { <-s.calls }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out, notes := &serve.Bounded{Most: maxAnswer, Full: stop}, &serve.Bounded{Most: maxNotes}
	status := do(ctx, out, notes)
	said := strings.TrimSpace(notes.String())
	if out.Over {
		return nil, nil, fmt.Errorf("the answer has more than %d bytes: ask for fewer rows or columns, "+
			"or for a smaller part", maxAnswer)
	}
	r := &sdk.CallToolResult{IsError: status == 1 || status == 2}
	add := func(text string) { r.Content = append(r.Content, &sdk.TextContent{Text: text}) }
	if out.Len() > 0 {
		add(out.String())
	}
	if said != "" || status != 0 || out.Len() == 0 {
		add(fmt.Sprintf("status %d\n%s", status, said))
	}
	return r, nil, nil
}
