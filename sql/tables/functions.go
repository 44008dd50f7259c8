package tables

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/fault"
	"stoa/sql/duck"
)

// A field of a document: its name in SQL, which needs no quotation marks, its position, and its type.
type docField struct {
	name, path string // path: members from the outermost inwards, joined with points
	typ        arrow.DataType
}

var (
	text   = arrow.BinaryTypes.String
	whole  = arrow.PrimitiveTypes.Int64
	number = arrow.PrimitiveTypes.Float64
	truth  = arrow.FixedWidthTypes.Boolean
)

// said is a table function over a verb's output about a place.
type said struct {
	verb   string
	places int      // arguments
	named  []string // flags of the verb
	flags  []string // that are always given
	fields []docField
	rows   func(doc any) []any // the rows of a document; nil: it is one
}

var functions = []said{
	{verb: "ls", places: 1, flags: []string{"-f", "jsonl"}, fields: []docField{{"name", "name", text},
		{"format", "format", text}, {"kind", "kind", text}, {"rows", "rows", whole}, {"bytes", "bytes", whole},
		{"columns", "columns", whole}, {"facts", "facts", text}, {"problem", "problem", text}}},
	{verb: "stats", places: 1, flags: []string{"-f", "jsonl"}, named: []string{"at", "damaged"},
		fields: []docField{{"column_name", "column", text}, {"type", "type", text}, {"encoding", "encoding", text},
			{"codec", "codec", text}, {"blocks", "blocks", whole}, {"rows", "rows", whole}, {"nulls", "nulls", whole},
			{"raw_bytes", "raw_bytes", whole}, {"stored_bytes", "stored_bytes", whole}, {"share", "share", number},
			{"dictionary", "dictionary", whole}, {"min", "min", text}, {"max", "max", text}}},
	{verb: "verify", places: 1, flags: []string{"-f", "jsonl"}, fields: []docField{{"code", "code", text},
		{"severity", "severity", text}, {"object", "object", text}, {"start", "offset", whole},
		{"length", "length", whole}, {"path", "path", text}, {"message", "message", text}, {"part", "part", text},
		{"table_name", "table", text}, {"column_name", "column", text}, {"from_row", "from", whole},
		{"to_row", "to", whole}, {"lost", "lost", whole}}},
	{verb: "describe", places: 1, flags: []string{"-f", "jsonl"}, fields: []docField{{"depth", "depth", whole},
		{"kind", "kind", text}, {"name", "name", text}, {"value", "value", text}, {"object", "object", text},
		{"start", "offset", whole}, {"length", "length", whole}, {"inner_bytes", "inner", whole}}},
	{verb: "explain", places: 1, flags: []string{"-f", "json"}, named: []string{"filter", "columns", "at"},
		rows: func(doc any) []any { return list(member(doc, "levels")) },
		fields: []docField{{"level", "level", text}, {"column_name", "column", text}, {"in_filter", "in_filter", truth},
			{"considered", "considered", whole}, {"read", "read", whole}, {"bytes", "bytes", whole},
			{"of_bytes", "of_bytes", whole}, {"passed_over", "skipped", text}}},
	{verb: "history", places: 1, flags: []string{"-f", "json"}, rows: events,
		fields: []docField{{"table_name", "table", text}, {"table_id", "table_id", text}, {"tablet", "tablet", text},
			{"event", "event.event", text}, {"hybrid", "event.at.hybrid", text}, {"time", "event.at.time", text},
			{"what", "event.what", text}, {"operations", "event.operations", whole}}},
	{verb: "diff", places: 2, flags: []string{"-f", "json", "-n", "1000"}, named: []string{"on", "damaged"},
		rows: differences, fields: []docField{{"difference", "difference", text}, {"row_a", "row_a", whole},
			{"row_b", "row_b", whole}, {"column_name", "column", text}, {"a", "a", text}, {"b", "b", text}}},
}

// Functions are the table functions besides stoa itself.
func Functions(ctx func() context.Context, set *Settings) (out []duck.Function) {
	for _, s := range functions {
		out = append(out, duck.Function{Name: "stoa_" + s.verb, Args: s.places, Named: s.named,
			Relate: func(c duck.Call) (*duck.Relation, error) { return s.relation(ctx(), set, c) }})
	}
	return out
}

func (s *said) relation(ctx context.Context, set *Settings, c duck.Call) (*duck.Relation, error) {
	var fields []arrow.Field
	for _, f := range s.fields {
		fields = append(fields, arrow.Field{Name: f.name, Type: f.typ, Nullable: true})
	}
	sc := arrow.NewSchema(fields, nil)
	rows, err := s.ask(ctx, set, c)
	if err != nil {
		return nil, err
	}
	r := &duck.Relation{Schema: sc, Rows: int64(len(rows)), Exact: true}
	r.Scan = func(_ context.Context, columns []int) iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) {
			all := s.batch(sc, rows)
			defer all.Release()
			b := pick(all, columns)
			defer b.Release()
			yield(b, nil)
		}
	}
	return r, nil
}

// ask runs the verb. Damage and differences that it finds are in the rows, not an error.
func (s *said) ask(ctx context.Context, set *Settings, c duck.Call) (rows []any, err error) {
	args := append([]string{s.verb}, c.Args...)
	args = append(args, s.flags...)
	for _, name := range s.named {
		if v, ok := c.Named[name]; ok {
			if name == "filter" { // where is a keyword
				name = "where"
			}
			args = append(args, "--"+name+"="+v)
		}
	}
	var out, errs bytes.Buffer
	a := verbs.NewApp(strings.NewReader(""), &out, &errs)
	if set.Within != nil {
		for _, place := range c.Args {
			if err := set.Within.Check(place); err != nil {
				return nil, err
			}
		}
		a.Within = set.Within
	}
	status, err := verbs.RunApp(stoa.Session(ctx), a, args)
	if err != nil && status != 3 {
		if verbs.Said(err) {
			return nil, fault.Invalidf("%s", strings.TrimSpace(errs.String()))
		}
		return nil, err
	}
	d := json.NewDecoder(&out)
	d.UseNumber()
	for d.More() {
		var doc any
		if err := d.Decode(&doc); err != nil {
			return nil, fault.Bugf("%s: %v", s.verb, err)
		}
		docs := list(doc)
		if docs == nil {
			docs = []any{doc}
		}
		for _, one := range docs {
			if s.rows != nil {
				rows = append(rows, s.rows(one)...)
			} else {
				rows = append(rows, one)
			}
		}
	}
	return rows, nil
}

func member(doc any, path string) any {
	for _, name := range strings.Split(path, ".") {
		o, _ := doc.(map[string]any)
		doc = o[name]
	}
	return doc
}

func list(doc any) []any {
	l, _ := doc.([]any)
	return l
}

// events returns those of a table and of its tablets.
func events(doc any) (out []any) {
	event := func(tablet, e any) {
		out = append(out, map[string]any{"table": member(doc, "table"), "table_id": member(doc, "table_id"),
			"tablet": tablet, "event": e})
	}
	for _, name := range []string{"first", "exact_from", "last"} {
		if at := member(doc, name); at != nil {
			event(nil, map[string]any{"event": name, "at": at})
		}
	}
	for _, e := range list(member(doc, "schema_changes")) {
		event(nil, e)
	}
	for _, t := range list(member(doc, "tablets")) {
		for _, e := range list(member(t, "events")) {
			event(member(t, "tablet"), e)
		}
	}
	return out
}

// differences returns those of the schemas, and the cells that differ.
func differences(doc any) (out []any) {
	for _, d := range list(member(doc, "schema")) {
		o, _ := d.(map[string]any)
		o["difference"] = "schema: " + member(d, "difference").(string)
		out = append(out, o)
	}
	for _, r := range list(member(doc, "examples")) {
		kind := "cell"
		switch {
		case member(r, "row_b") == nil:
			kind = "row only in a"
		case member(r, "row_a") == nil:
			kind = "row only in b"
		}
		for _, c := range list(member(r, "cells")) {
			out = append(out, map[string]any{"difference": kind, "row_a": member(r, "row_a"),
				"row_b": member(r, "row_b"), "column": member(c, "column"), "a": member(c, "a"), "b": member(c, "b")})
		}
	}
	return out
}

func (s *said) batch(sc *arrow.Schema, rows []any) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for _, row := range rows {
		for i, f := range s.fields {
			appendValue(b.Field(i), member(row, f.path))
		}
	}
	return b.NewRecordBatch()
}

// appendValue appends a value of JSON; if it is no value of the column's type, its document as text.
func appendValue(b array.Builder, v any) {
	n, isNumber := v.(json.Number)
	switch b := b.(type) {
	case *array.Int64Builder:
		if i, err := n.Int64(); isNumber && err == nil {
			b.Append(i)
			return
		}
	case *array.Float64Builder:
		if f, err := n.Float64(); isNumber && err == nil {
			b.Append(f)
			return
		}
	case *array.BooleanBuilder:
		t, _ := v.(bool)
		b.Append(t)
		return
	case *array.StringBuilder:
		switch v := v.(type) {
		case nil:
		case string:
			b.Append(v)
			return
		default:
			doc, _ := json.Marshal(v)
			b.Append(string(doc))
			return
		}
	}
	b.AppendNull()
}
