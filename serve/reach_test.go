package serve_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// damagedPlace is a directory with tables of several formats, damage, and ways out: links to a file with a secret, to
// its directory, up, to itself, a pipe.
func damagedPlace(t *testing.T) (dir, outside string) {
	t.Helper()
	outside = t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.parquet"), []byte(secret), 0o666); err != nil {
		t.Fatal(err)
	}
	dir = copyOf(t, map[string]string{"a.red": red, "wiki.trv": "trevni/dialects/wiki_dremel.trv",
		"sub/b.red": "redfile/red1a/a_plain.red"})
	b, err := os.ReadFile(filepath.Join(dir, "a.red"))
	if err != nil {
		t.Fatal(err)
	}
	b[150] ^= 0x40
	if err := os.WriteFile(filepath.Join(dir, "damaged.red"), b, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "people.csv"), []byte("name,age\nanna,7\nben,8\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	up, err := filepath.Rel(dir, outside)
	if err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"out.parquet": filepath.Join(outside, "secret.parquet"), "outdir": outside,
		"relative.parquet": filepath.Join(up, "secret.parquet"), "up": "..", "self": "self", "sub/above": "..",
		"etc": "/etc", "root": "/", "inside.red": "sub/b.red"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.csv"), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir, outside
}

// byName are the addresses that take a name, with what else they need.
var byName = []string{"/api/files?", "/api/rows?", "/api/anatomy?", "/api/map?", "/api/at?offset=0&", "/api/parts?",
	"/api/bytes?", "/api/search?q=0&", "/api/verify?", "/api/verify?depth=deep&", "/api/export?form=csv&",
	"/api/command?verb=ls&", "/api/reads?", "/api/values?column=i&",
	"/api/command?verb=schema&", "/api/command?verb=meta&", "/api/command?verb=stats&",
	"/api/command?verb=history&", "/api/command?verb=explain&", "/api/command?verb=explain&analyze=true&"}

// TestOnlyWhatIsServed: no name leads out of the places, by .., by links, by other syntax, or by an address.
func TestOnlyWhatIsServed(t *testing.T) {
	dir, outside := damagedPlace(t)
	s := newServer(t, nil, dir)
	out := filepath.Base(outside)
	names := []string{outside, outside + "/secret.parquet", "/etc/passwd", "/", ".", "..", "", "-", "@" + dir,
		"@/etc/passwd", dir + "/..", dir + "/../" + out + "/secret.parquet", dir + "/sub/../../" + out,
		dir + "/%2e%2e/" + out,
		dir + "/out.parquet", dir + "/relative.parquet", dir + "/outdir", dir + "/outdir/secret.parquet", dir + "/up",
		dir + "/up/" + out + "/secret.parquet", dir + "/etc/passwd", dir + "/root/etc/passwd", dir + "/self",
		dir + "/sub/above/../../" + out + "/secret.parquet", dir + "/out*.parquet", dir + "#../" + out,
		dir + "/../" + out + "#secret.parquet", outside + "/secret.parquet#" + dir, outside + "#" + dir,
		dir + "x", dir + "\x00/etc/passwd", "file://" + outside + "/secret.parquet", "s3://bucket/key",
		"http://127.0.0.1:1/x", "https://127.0.0.1:1/x#t", dir + "\\..\\" + out, "~", dir + "/a.red/../../" + out,
		dir + "/*/secret.parquet", strings.Repeat(dir+"/", 100), strings.Repeat("a", 5000)}
	for _, name := range names {
		for _, path := range byName {
			w := get(s, path+"name="+url.QueryEscape(name))
			body := w.Body.String()
			if strings.Contains(body, "nobody-may") || strings.Contains(body, "root:") ||
				strings.Contains(body, "6e6f626f64792d6d61792d736565") {
				t.Errorf("%s %q: got %s", path, name, body)
			}
			if w.Code == http.StatusOK && !strings.HasPrefix(path, "/api/verify") && fine(t, path, body) {
				t.Errorf("%s %q: got %d %.300s", path, name, w.Code, body)
			}
		}
	}
	// The check can fail: what is served is answered.
	for _, name := range []string{dir + "/a.red", dir + "/inside.red", dir + "/sub/b.red"} {
		for _, path := range []string{"/api/rows?", "/api/anatomy?", "/api/bytes?", "/api/command?verb=schema&"} {
			if w := get(s, path+"name="+url.QueryEscape(name)); w.Code != 200 || !fine(t, path, w.Body.String()) {
				t.Errorf("%s %q: got %d %s", path, name, w.Code, w.Body)
			}
		}
	}
}

// fine reports whether an answer has something: a command that failed has none.
func fine(t *testing.T, path, body string) bool {
	if !strings.HasPrefix(path, "/api/command") {
		return true
	}
	var doc struct {
		Status int
		Doc    json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil {
		t.Errorf("%s: %v", path, err)
	}
	return doc.Status == 0
}

// TestLinksOut: a listing has the links that lead somewhere in the place, and names none that lead out.
func TestLinksOut(t *testing.T) {
	dir, outside := damagedPlace(t)
	s := newServer(t, nil, dir)
	doc := answer[struct{ Files []struct{ Name string } }](t, s, api("files", "name", dir))
	var names []string
	for _, f := range doc.Files {
		names = append(names, strings.TrimPrefix(f.Name, dir+"/"))
	}
	if got, want := fmt.Sprint(names), "[a.red damaged.red inside.red people.csv sub/b.red wiki.trv]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	body := get(s, api("command", "verb", "ls", "name", dir)).Body.String()
	if strings.Contains(body, outside) || strings.Contains(body, "secret") {
		t.Errorf("got %s", body)
	}
}

// TestOneFile: a server of one file has nothing else of its directory.
func TestOneFile(t *testing.T) {
	dir, _ := damagedPlace(t)
	s := newServer(t, nil, dir+"/a.red")
	for name, want := range map[string]int{dir + "/a.red": 200, dir + "/damaged.red": 404, dir: 404,
		dir + "/sub/b.red": 404, dir + "/a.red/": 200, dir + "/a.red/x": 404} {
		if w := get(s, api("anatomy", "name", name)); w.Code != want {
			t.Errorf("%s: got %d %s, want %d", name, w.Code, w.Body, want)
		}
	}
}

// TestEveryAddressAtRandom asks 10,000 times for anything with any parameters: no panic, no secret, and each answer is
// a document or an error of a known kind.
func TestEveryAddressAtRandom(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 1_000
	}
	dir, outside := damagedPlace(t)
	more := []string{"../corpus/kudu/1.18.1/synthetic", "../corpus/carbon/2.3.0/v3/allprim_zstd"}
	for i, m := range more {
		var err error
		if more[i], err = filepath.Abs(m); err != nil {
			t.Fatal(err)
		}
	}
	s := newServer(t, nil, dir, more[0], more[1])
	files := append([]string{dir, dir + "/a.red", dir + "/damaged.red", dir + "/wiki.trv", dir + "/people.csv",
		dir + "/sub/b.red", dir + "/inside.red"}, more...)
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[int]int{}
	for i := range n {
		path := randomPath(r, files, filepath.Base(outside))
		w := get(s, path)
		seen[w.Code]++
		body := w.Body.String()
		if strings.Contains(body, "nobody-may") || strings.Contains(body, "root:x:") {
			t.Fatalf("request %d, %s: got %s", i, path, body)
		}
		switch w.Code {
		case 200, 307, 400, 404, 413, 422:
		default:
			t.Fatalf("request %d, %s: got %d %.500s", i, path, w.Code, body)
		}
		if kind := w.Header().Get("Content-Type"); strings.HasPrefix(kind, "application/json") &&
			!strings.HasPrefix(path, "/api/export") && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("request %d, %s: this is no JSON: %.300s", i, path, body)
		}
	}
	if seen[200] < n/20 || seen[400] < n/20 || seen[404] < n/20 {
		t.Errorf("the answers are of one kind: %v", seen)
	}
	t.Logf("%d requests: %v", n, seen)
}

func randomPath(r *rand.Rand, files []string, outside string) string {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	number := func() string {
		return pick("0", "1", "-1", "7", "100", "1000", "4096", "999999999999", "9223372036854775807",
			"9223372036854775808", "x", "1e3", "0x10", " 1", fmt.Sprint(r.IntN(2000)))
	}
	name := pick(files...)
	switch r.IntN(6) {
	case 0:
		name += pick("/..", "/../"+outside+"/secret.parquet", "/out.parquet", "/outdir/secret.parquet",
			"/etc/passwd", "#x", "#", "#a.b", "/", "//", "/.", "\x00", "\xff", "*", "?", "[", "/*", "/sub", "{}")
	case 1:
		b := []byte(name)
		b[r.IntN(len(b))] = byte(r.IntN(256))
		name = string(b)
	}
	q := url.Values{"name": {name}}
	for range r.IntN(5) {
		switch key := pick("from", "to", "n", "offset", "length", "node", "skip", "q", "where", "columns", "raw",
			"pages", "verb", "form", "depth", "analyze", "code", "column"); key {
		case "where":
			q.Set(key, pick("i > 3", "i >> 3", "nope = 1", "", "'", "i is null and (", "s like '%'", "true", "age = 7",
				strings.Repeat("(", 3000), strings.Repeat("i=1 or ", 500)+"i=2", "\x00"))
		case "q":
			q.Set(key, pick("0", "0x1f", "row 7", "row x", "page", "", "magic", "-1", "999999999999999", "\xff"))
		case "verb":
			q.Set(key, pick("ls", "schema", "meta", "stats", "history", "explain", "finding", "cat", "convert", "drop",
				"-h"))
		case "form":
			q.Set(key, pick("csv", "tsv", "json", "jsonl", "arrow", "parquet", "table", "-o/tmp/x"))
		case "columns", "code", "column":
			q.Set(key, pick("i", "i,l", "nope", "", "--help", "-o/tmp/x", "cfile.block.checksum", "\"", "a,,b"))
		case "depth":
			q.Set(key, pick("quick", "sums", "deep", "deeper"))
		case "raw", "pages", "analyze":
			q.Set(key, pick("true", "false", "1"))
		default:
			q.Set(key, number())
		}
	}
	at := pick("/api/files", "/api/rows", "/api/rows", "/api/anatomy", "/api/map", "/api/at", "/api/parts",
		"/api/bytes", "/api/search", "/api/verify", "/api/values", "/api/reads",
		"/api/export", "/api/command", "/api/command", "/api/places", "/",
		"/page/core.js", "/page/..%2f..%2fserve.go", "/page/", "/nothing", "/api/", "/api/rows/x", "//api/rows")
	if r.IntN(50) == 0 {
		return at + "?" + pick("%", "name=%zz", "name", "=", "&&&", ";", strings.Repeat("a=b&", 2000))
	}
	return at + "?" + q.Encode()
}

// TestPipes: no request waits for the other end of a pipe, whether it takes it for a file or for a directory.
func TestPipes(t *testing.T) {
	dir, _ := damagedPlace(t)
	s := newServer(t, nil, dir)
	for _, address := range byName {
		path := address + url.Values{"name": {dir + "/pipe.csv"}}.Encode()
		ended := make(chan int, 1)
		go func() { ended <- get(s, path).Code }()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s waits for the other end of a pipe", path)
		}
	}
}
