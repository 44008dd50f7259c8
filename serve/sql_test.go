package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// asked for a query, the server answers with the texts of the program's rows, and with as many as fit.
func TestSQL(t *testing.T) {
	var said string
	notes, status := "", 0
	var got []string
	s := &Server{Config: Config{SQL: func(ctx context.Context, places []string, query string, out, n io.Writer) int {
		got = append(places, query)
		for l := range strings.Lines(said) {
			if _, err := io.WriteString(out, l); err != nil || ctx.Err() != nil {
				return 130
			}
		}
		io.WriteString(n, notes)
		return status
	}}, tree: &Tree{places: []place{{name: "a"}, {name: "b"}}}}
	ask := func(query string) (r sqlResult) {
		t.Helper()
		doc, err := s.sqlDoc(t.Context(), request(query))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := json.Marshal(doc)
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	said = "{\"b\":1,\"a\":null}\n{\"a\":\"x\\\"\",\"c\":[9223372036854775807]}\n"
	r := ask("select 'it''s'")
	if text := show(r); text != `[b a c] 1,-,- -,x",[9223372036854775807]` ||
		fmt.Sprint(got) != "[a b select 'it''s']" || r.Command != `stoa sql 'select '\''it'\'''\''s'\'''` {
		t.Error(text, got, r.Command)
	}
	said, notes, status = "", "stoa: wrong\n  at 3\n", 2
	if r := ask("x"); r.Status != 2 || fmt.Sprint(r.Notes) != "[stoa: wrong   at 3]" || len(r.Rows) != 0 {
		t.Error(r)
	}
	said, notes, status = strings.Repeat("{\"a\":1}\n", maxSQLRows), "", 0
	if r := ask("x"); len(r.Rows) != maxSQLRows || r.Cut {
		t.Error(len(r.Rows), r.Cut)
	}
	said += "{\"a\":1}\n"
	if r := ask("x"); len(r.Rows) != maxSQLRows || !r.Cut || r.Status != 0 {
		t.Error(len(r.Rows), r.Cut, r.Status)
	}
	row := "{\"a\":\"" + strings.Repeat("x", maxResult*3/5) + "\"}\n"
	if said = row + row; len(ask("x").Rows) != 1 || !ask("x").Cut {
		t.Error("more bytes than are kept")
	}
	for _, query := range []string{"", strings.Repeat("x", maxQuery+1)} {
		if _, err := s.sqlDoc(t.Context(), request(query)); err == nil {
			t.Errorf("a query of %d bytes is taken", len(query))
		}
	}
	s.SQL = nil
	if _, err := s.sqlDoc(t.Context(), request("x")); err == nil || !strings.Contains(err.Error(), "stoa-sql") {
		t.Error(err)
	}
}

func request(text string) query {
	return query{httptest.NewRequest("GET", "/api/sql?"+url.Values{"query": {text}}.Encode(), nil)}
}

func show(r sqlResult) string {
	text := fmt.Sprint(r.Columns)
	for _, row := range r.Rows {
		var cells []string
		for _, c := range row {
			if c == nil {
				cells = append(cells, "-")
			} else {
				cells = append(cells, *c)
			}
		}
		text += " " + strings.Join(cells, ",")
	}
	return text
}
