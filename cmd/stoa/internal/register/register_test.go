package register

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// catalogueServer is a REST catalogue as Iceberg's OpenAPI document describes it: what Register needs of it.
type catalogueServer struct {
	mu     sync.Mutex
	prefix string
	spaces map[string]bool
	tables map[string]string
	asked  []string
}

func (s *catalogueServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
	fail := func(status int, message string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error": {"message": %q, "type": "X", "code": %d}}`, message, status)
	}
	rest, ok := strings.CutPrefix(r.URL.Path, "/cat/v1/"+s.prefix)
	switch {
	case r.Header.Get("Authorization") != "Bearer word":
		fail(http.StatusUnauthorized, "no token")
	case r.URL.Path == "/cat/v1/config" && r.URL.RawQuery == "warehouse=w":
		fmt.Fprintf(w, `{"defaults": {"prefix": "other"}, "overrides": {"prefix": %q}}`, strings.Trim(s.prefix, "/"))
	case !ok:
		fail(http.StatusNotFound, "no such address")
	case r.Method == http.MethodPost && rest == "namespaces":
		var doc struct{ Namespace []string }
		if json.Unmarshal(b, &doc) != nil {
			fail(http.StatusBadRequest, "no JSON")
		} else if name := strings.Join(doc.Namespace, "\x1f"); s.spaces[name] {
			fail(http.StatusConflict, "it is there")
		} else {
			s.spaces[name] = true
			_, _ = w.Write(b)
		}
	case r.Method == http.MethodPost && strings.HasSuffix(rest, "/register"):
		var doc struct {
			Name     string
			Location string `json:"metadata-location"`
		}
		space := strings.TrimSuffix(strings.TrimPrefix(rest, "namespaces/"), "/register")
		if json.Unmarshal(b, &doc) != nil || !s.spaces[space] {
			fail(http.StatusNotFound, "no namespace")
		} else if key := space + "/" + doc.Name; s.tables[key] != "" {
			fail(http.StatusConflict, "the table is there")
		} else {
			s.tables[key] = doc.Location
			fmt.Fprint(w, `{"metadata": {}}`)
		}
	case r.Method == http.MethodGet:
		space, name, _ := strings.Cut(strings.TrimPrefix(rest, "namespaces/"), "/tables/")
		if s.tables[space+"/"+name] == "" {
			fail(http.StatusNotFound, "no such table")
		}
	default:
		fail(http.StatusMethodNotAllowed, "no")
	}
}

// TestRegister registers tables in a catalogue: in namespaces of several levels, in one that is there, and a name that
// is taken.
func TestRegister(t *testing.T) {
	t.Setenv(tokenVariable, "word")
	s := &catalogueServer{prefix: "main/", spaces: map[string]bool{}, tables: map[string]string{}}
	server := httptest.NewServer(s)
	defer server.Close()
	for i, x := range []struct{ fragment, key string }{{"#a.b.t", "a\x1fb/t"}, {"", "default/dir"},
		{"#one", "default/one"}, {"#a.b.T2", "a\x1fb/T2"}} {
		c, err := Parse("rest:"+server.URL+"/cat/v1/?warehouse=w"+x.fragment, "x/dir/")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		at := fmt.Sprintf("file:///%d.metadata.json", i)
		if err := c.Register(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		if s.tables[x.key] != at {
			t.Errorf("%s: got %q, want %s at %q; asked %q", x.fragment, s.tables, at, x.key, s.asked)
		}
		if err := c.Check(t.Context()); err == nil || !strings.Contains(err.Error(), c.Name()+" already") {
			t.Errorf("Check of a name that is taken: got %v", err)
		}
		err = c.Register(t.Context(), "other")
		if err == nil || !strings.Contains(err.Error(), "409: the table is there") {
			t.Errorf("Register of a name that is taken: got %v", err)
		}
	}
	t.Setenv(tokenVariable, "")
	c, err := Parse("rest:"+server.URL+"/cat?warehouse=w", "dir")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "401: no token") {
		t.Errorf("without a token: got %v", err)
	}
}

// TestAddresses: what is no address of a REST catalogue is refused.
func TestAddresses(t *testing.T) {
	for _, text := range []string{"", "rest:", "rest:localhost:8181", "http://h", "hive:thrift://h",
		"rest:http://u:p@h/", "sqlite:x.db", "rest:ftp://h"} {
		if c, err := Parse(text, "dir"); err == nil {
			t.Errorf("%q: got %+v, want an error", text, c)
		}
	}
}

// TestLines: names with dots and quotes stay one name. The lines for pyiceberg, DuckDB and
// Spark 3.3 were tried with such names.
func TestLines(t *testing.T) {
	for _, c := range []struct{ name, pyiceberg, duck, spark, trino string }{
		{"t", `catalog.register_table(("db", "t"), "file:///w/t/metadata/v1.metadata.json")`,
			"from iceberg_scan('file:///w/t')",
			"CALL cat.system.register_table('db.t', 'file:///w/t/metadata/v1.metadata.json')",
			"CALL cat.system.register_table('db', 't', 'file:///w/t')"},
		{"sales.managed1",
			`catalog.register_table(("db", "sales.managed1"), "file:///w/sales.managed1/metadata/v1.metadata.json")`,
			"from iceberg_scan('file:///w/sales.managed1')",
			"CALL cat.system.register_table('db.`sales.managed1`', " +
				"'file:///w/sales.managed1/metadata/v1.metadata.json')",
			"CALL cat.system.register_table('db', 'sales.managed1', 'file:///w/sales.managed1')"},
		{"o'1`2", "catalog.register_table((\"db\", \"o'1`2\"), \"file:///w/o'1`2/metadata/v1.metadata.json\")",
			"from iceberg_scan('file:///w/o''1`2')",
			"CALL cat.system.register_table('db.`o\\'1``2`', 'file:///w/o\\'1`2/metadata/v1.metadata.json')",
			"CALL cat.system.register_table('db', 'o''1`2', 'file:///w/o''1`2')"},
	} {
		want := [][2]string{{"pyiceberg", c.pyiceberg}, {"DuckDB", c.duck}, {"Spark", c.spark}, {"Trino", c.trino}}
		if got := Lines("file:///w/" + c.name); !slices.Equal(got, want) {
			t.Errorf("%s: got\n%q\nwant\n%q", c.name, got, want)
		}
	}
}
