package serve_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/serve"
)

// demo makes the files of stoa demo, with damaged copies.
func demo(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	if status := run(t, "demo", dir, "--damage"); status != 0 {
		t.Fatalf("demo: status %d", status)
	}
	return dir
}

// TestPast: rows, values and statistics as of a moment are those of that moment, and the kept table of another moment
// is not mixed up with it. The numbers are those of stoa count --at, which a real Kudu is asked for in interop/kudu.
func TestPast(t *testing.T) {
	dir := demo(t)
	s := newServer(t, nil, dir)
	name := dir + "/kudu#d_major"
	type rows struct{ Total int64 }
	for range 2 {
		for at, want := range map[string]int64{"": 1619, "2026-11-21T07:39:00Z": 1485} {
			if got := answer[rows](t, s, api("rows", "name", name, "at", at, "n", "1")).Total; got != want {
				t.Errorf("at %q: %d rows, want %d", at, got, want)
			}
			v := answer[struct{ Rows int64 }](t, s, api("values", "name", name, "at", at, "column", "id"))
			if v.Rows != want {
				t.Errorf("values at %q: %d rows, want %d", at, v.Rows, want)
			}
			w := get(s, api("export", "name", name, "at", at, "form", "csv"))
			if n := int64(strings.Count(w.Body.String(), "\n")) - 1; n != want {
				t.Errorf("export at %q: %d rows, want %d", at, n, want)
			}
		}
	}
	for _, at := range []string{"yesterday's noon", "1999-01-01T00:00:00Z", strings.Repeat("2", 65), "\x00"} {
		if w := get(s, api("rows", "name", name, "at", at)); w.Code == http.StatusOK {
			t.Errorf("at %q: got %s", at, w.Body)
		}
	}
	if w := get(s, api("rows", "name", dir+"/flat.red", "at", "2026-11-21T07:39:00Z")); w.Code != 400 {
		t.Errorf("the past of a format without one: got %d %s", w.Code, w.Body)
	}
}

// TestRecoverTo: only a server that may write does; only what its own page asks for; only new files, in the directory.
func TestRecoverTo(t *testing.T) {
	dir, saved := demo(t), t.TempDir()
	post := func(s http.Handler, as string, change func(*http.Request)) *httptest.ResponseRecorder {
		return get(s, api("recover", "name", dir+"/damaged/key.cfile", "as", as), func(r *http.Request) {
			r.Method, r.Body = "POST", http.NoBody
			r.Header.Set("Origin", "http://"+r.Host)
			r.Header.Set("X-Stoa", "1")
			if change != nil {
				change(r)
			}
		})
	}
	if w := post(newServer(t, nil, dir), "a.parquet", nil); w.Code != 405 {
		t.Errorf("a server that only reads: got %d %s", w.Code, w.Body)
	}
	s := newServer(t, func(c *serve.Config) { c.Write = saved }, dir, saved)
	for why, change := range map[string]func(*http.Request){
		"GET":            func(r *http.Request) { r.Method = "GET" },
		"no origin":      func(r *http.Request) { r.Header.Del("Origin") },
		"another origin": func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") },
		"a form":         func(r *http.Request) { r.Header.Del("X-Stoa") },
		"another site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"another name":   func(r *http.Request) { r.Host = "evil.example" },
		"a body":         func(r *http.Request) { r.ContentLength = 5 },
		"another path":   func(r *http.Request) { r.URL.Path = "/api/verify" },
	} {
		if w := post(s, "a.parquet", change); w.Code < 400 || w.Code >= 500 {
			t.Errorf("%s: got %d %s", why, w.Code, w.Body)
		}
	}
	for _, as := range []string{"", ".", "..", "../a.csv", "/tmp/a.csv", "a/b.csv", "-o", ".hidden", "a\x00.csv",
		"a b.csv", strings.Repeat("a", 121), `..\a.csv`} {
		if w := post(s, as, nil); w.Code != 400 {
			t.Errorf("as %q: got %d %s", as, w.Code, w.Body)
		}
	}
	if left, _ := os.ReadDir(saved); len(left) != 0 {
		t.Fatalf("these were written: %v", left)
	}
	type ended struct {
		Status int
		Notes  []string
	}
	last := func(w *httptest.ResponseRecorder) (e ended) {
		lines := strings.Split(strings.TrimSpace(w.Body.String()), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
		return e
	}
	if e := last(post(s, "a.parquet", nil)); e.Status != 3 || !strings.Contains(strings.Join(e.Notes, "\n"),
		"rows 128:256") {
		t.Errorf("got %v", e)
	}
	before, err := os.ReadFile(filepath.Join(saved, "a.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	if e := last(post(s, "a.parquet", nil)); e.Status != 2 {
		t.Errorf("a file that exists: got %v", e)
	}
	if after, _ := os.ReadFile(filepath.Join(saved, "a.parquet")); string(after) != string(before) {
		t.Error("a file that existed was changed")
	}
	type diff struct {
		Doc struct{ Rows_A, Rows_B, Only_A int }
	}
	d := answer[diff](t, s, api("command", "verb", "diff", "name", dir+"/damaged/key.cfile", "other",
		saved+"/a.parquet"))
	if d.Doc.Rows_A != 400 || d.Doc.Rows_B != 272 {
		t.Errorf("got %+v", d)
	}
	w := get(s, api("command", "verb", "diff", "name", dir+"/key.cfile", "other", "/etc/passwd"))
	if w.Code != 404 {
		t.Errorf("compared with what is not served: got %d %s", w.Code, w.Body)
	}
}

// TestSays: structures of each format come with what its documents say about them; and every sentence is about a name.
func TestSays(t *testing.T) {
	dir := demo(t)
	s := newServer(t, nil, dir)
	for _, c := range []struct{ file, q, want string }{
		{"key.cfile", "posidx", "index by row number"}, {"flat.red", "magic", "RED1"},
		{"primitives.trv", "block-count", "How many blocks"},
	} {
		type nodes struct{ Nodes []struct{ ID int } }
		found := answer[nodes](t, s, api("search", "name", dir+"/"+c.file, "q", c.q))
		if len(found.Nodes) == 0 {
			t.Errorf("%s: no %s", c.file, c.q)
			continue
		}
		type at struct{ Path []struct{ Name, Says string } }
		doc := answer[at](t, s, api("at", "name", dir+"/"+c.file, "node", jsonText(found.Nodes[0].ID)))
		if last := doc.Path[len(doc.Path)-1]; !strings.Contains(last.Says, c.want) {
			t.Errorf("%s: of %s it says %q, want %q", c.file, last.Name, last.Says, c.want)
		}
	}
	b, err := os.ReadFile("words/fields.tsv")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, l := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		f := strings.Split(l, "\t")
		if len(f) != 3 || seen[f[0]+"\t"+f[1]] || !strings.HasSuffix(f[2], ".") {
			t.Errorf("line %d: %q", i+1, l)
			continue
		}
		seen[f[0]+"\t"+f[1]] = true
	}
}

func jsonText(x any) string {
	b, _ := json.Marshal(x)
	return string(b)
}

// TestTracker: what the nodes of describe tell one by one is what the anatomy of the whole file has.
func TestTracker(t *testing.T) {
	for _, name := range corpusFiles(t) {
		st, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		o := stoa.DescribeOptions{OpenOptions: stoa.OpenOptions{Formats: verbs.Formats()}}
		a, err := serve.Describe(t.Context(), name, st.Size(), o)
		if err != nil {
			continue
		}
		var tracker serve.Tracker
		id := 0
		for n, err := range stoa.Describe(t.Context(), name, o) {
			if err != nil {
				break
			}
			told := tracker.Add(n)
			if n.At.Object != name && n.At.Object != "" {
				continue
			}
			want := a.Path(id)
			w := want[len(want)-1]
			if told.Role != w.Role || told.Column != w.Column || (w.From == nil) != (told.From < 0) ||
				w.From != nil && *w.From != told.From || told.To >= 0 && (w.To == nil || *w.To != told.To) {
				t.Errorf("%s: %s: told %+v, want %+v", name, n.Name, told, w)
				break
			}
			id++
		}
	}
}
