package serve_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stoa/serve"
)

// rawRequest is a request as it is sent, and what a model of the rules says about it.
type rawRequest struct {
	text    string
	mayRead bool // it may be answered with what is in files
	writes  bool // it may make a file
	odd     bool // it has wrong bytes, and perhaps no end
}

// TestRawRequestsAtRandom sends 10,000 requests through a socket, with any method, address, headers and body, a third
// of them with wrong bytes. Whether one may be answered is told by the lists from which it was drawn, not by the
// server. No panic, no secret, nothing changed but by requests that may write, and those write one new file into their
// directory.
func TestRawRequestsAtRandom(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 600
	}
	dir, outside := damagedPlace(t)
	to := t.TempDir()
	if err := os.WriteFile(filepath.Join(to, "old.csv"), []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(to, "link")); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, func(c *serve.Config) { c.Write = to }, dir)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Run(t.Context(), l, 0)
	served, elsewhere, kept := stateOf(t, dir), stateOf(t, outside), stateOf(t, to)
	files := []string{dir, dir + "/a.red", dir + "/damaged.red", dir + "/wiki.trv", dir + "/people.csv"}
	r := rand.New(rand.NewPCG(27, 10_000))
	seen, written := map[string]int{}, 0
	for i := range n {
		q := randomRaw(r, files, filepath.Base(outside))
		got := sent(t, l.Addr().String(), q)
		status := "none"
		if f := strings.Fields(string(got[:min(len(got), 20)])); len(f) > 1 {
			status = f[1]
		}
		seen[status]++
		if bytes.Contains(got, []byte("nobody-may")) || bytes.Contains(got, []byte("root:x:")) ||
			bytes.Contains(got, []byte("6e6f626f64792d6d61792d736565")) {
			t.Fatalf("request %d, %q: got %q", i, q.text, got)
		}
		if status == "500" || status == "200" && !q.mayRead && !q.writes {
			t.Fatalf("request %d, %q: got %.300q", i, q.text, got)
		}
		after := stateOf(t, to)
		for name, sum := range kept {
			if after[name] != sum {
				t.Fatalf("request %d, %q: %s was changed", i, q.text, name)
			}
		}
		if made := len(after) - len(kept); made > 1 || made > 0 && !q.writes {
			t.Fatalf("request %d, %q: made %v of %v", i, q.text, after, kept)
		} else {
			written += made
		}
		kept = after
	}
	if fmt.Sprint(stateOf(t, dir)) != fmt.Sprint(served) || fmt.Sprint(stateOf(t, outside)) != fmt.Sprint(elsewhere) {
		t.Error("files that are only read were changed")
	}
	if seen["200"] < n/20 || seen["421"] < n/40 || seen["403"] < n/40 || seen["400"] < n/40 || written == 0 {
		t.Errorf("the answers are of few kinds: %v, %d files made", seen, written)
	}
	t.Logf("%d requests: %v, %d files made", n, seen, written)
}

// randomRaw draws a request. A part of the lists is what is allowed, the rest is not.
func randomRaw(r *rand.Rand, files []string, outside string) (q rawRequest) {
	const home = "127.0.0.1:4321"
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	good := true // as far as the headers tell
	// one is, in most cases, of the first k, which are fine
	one := func(k int, all ...string) string {
		at := r.IntN(k)
		if r.IntN(5) == 0 {
			at = r.IntN(len(all))
		}
		good = good && at < k
		return all[at]
	}
	write := r.IntN(8) == 0
	var b strings.Builder
	if write {
		as := pick("new.csv", "a", "b.parquet", "old.csv", "../x.csv", "link/x.csv", "/etc/x.csv", "", ".", "..",
			"a/b.csv", "-o", "\x00", "%2e%2e%2fx.csv", "n"+fmt.Sprint(r.IntN(1000))+".csv",
			"n"+fmt.Sprint(r.IntN(1000))+".parquet",
			strings.Repeat("x", 300)+".csv", "x.csv#../y", "--force", "s3://b/k.csv", "@new.csv", "*.csv")
		path := api("recover", "name", pick(files...)+pick("", "", "", "/../"+outside), "as", as)
		fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", one(1, "POST", "GET", "PUT", "DELETE"), path,
			one(1, home, "evil.example", "evil.example:4321"))
		fmt.Fprintf(&b, "X-Stoa%s\r\n", one(1, ": 1", "x: 1"))
		fmt.Fprintf(&b, "Origin%s\r\n", one(1, ": http://"+home, ": http://evil.example", ": null", ":", "x: y"))
	} else {
		fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", one(2, "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH",
			"OPTIONS", "TRACE", "CONNECT", "get", "MOVE"), strings.ReplaceAll(randomPath(r, files, outside), " ", "+"),
			one(4, home, "localhost", "LOCALHOST:1", "[::1]:4321", "evil.example", "127.0.0.1.evil.example", "10.0.0.1",
				"localhost.evil.example", "[::ffff:10.0.0.1]", "0x7f000001", "", "127.0.0.1@evil.example", "127.1"))
		if r.IntN(2) == 0 {
			fmt.Fprintf(&b, "Origin: %s\r\n",
				one(1, "", "http://evil.example", "null", "http://127.0.0.1:1", "file://"))
		}
	}
	if r.IntN(3) == 0 {
		fmt.Fprintf(&b, "Sec-Fetch-Site: %s\r\n", one(2, "same-origin", "none", "cross-site", "same-site", "x"))
	}
	for range r.IntN(3) {
		fmt.Fprintf(&b, "%s: %s\r\n", pick("Range", "Cookie", "Authorization", "X-Forwarded-Host", "X-Forwarded-For",
			"X-HTTP-Method-Override", "Accept-Encoding", "If-None-Match", "Upgrade", "X-Original-URL", "Referer"),
			pick("bytes=0-", "stoa-token-4321=x", "Bearer x", "DELETE", "/etc/passwd", "gzip", "*", "h2c",
				strings.Repeat("y", 3000), "\x01"))
	}
	body := one(1, "", "Content-Length: 3\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "Content-Length: -1\r\n\r\n")
	if body == "" {
		body = "\r\n"
	}
	q.text = b.String() + "Connection: close\r\n" + body
	q.mayRead, q.writes = good && !write, good && write
	if r.IntN(3) == 0 { // wrong bytes may turn a request into any other; what is refused may then be fine, but not more
		t := []byte(q.text)
		for range 1 + r.IntN(4) {
			t[r.IntN(len(t))] = byte(r.IntN(256))
		}
		q.text, q.mayRead, q.writes, q.odd = string(t), true, write, true
	}
	return q
}

// sent sends a request and returns all that comes back. Only after an odd one it says that nothing follows: a client
// that says so has left, for the server, and what it asked for is ended.
func sent(t *testing.T, address string, q rawRequest) []byte {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	io.WriteString(c, q.text) // the server may have hung up
	if q.odd {
		c.(*net.TCPConn).CloseWrite()
	}
	b, err := io.ReadAll(c)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		t.Fatalf("%q: no answer in 30 s", q.text)
	}
	return b
}

// stateOf is what lies below a directory: the names, and what is in the files.
func stateOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	state := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			state[name] = d.Type().String()
			return err
		}
		b, err := os.ReadFile(name)
		state[name] = fmt.Sprintf("%x", sha256.Sum256(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return state
}
