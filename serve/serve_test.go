package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stoa/cmd/stoa/verbs"
	"stoa/serve"
	"stoa/store"
)

// secret is the content of files that are not served; no answer ever has a part of it.
const secret = "PAR1-nobody-may-see-this-PAR1"

// command is the command as the verb serve runs it.
func command(ctx context.Context, tree store.Tree, args []string, out, errs io.Writer) int {
	a := verbs.NewApp(nil, out, errs)
	a.Within = tree
	status, _ := verbs.RunApp(ctx, a, args)
	return status
}

// bugs collects what a server logs: panics.
type bugs struct {
	mu   sync.Mutex
	said []string
}

func (b *bugs) log(s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, s)
}

func (b *bugs) check(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.said {
		t.Errorf("a panic: %s", s)
	}
}

func newServer(t *testing.T, change func(*serve.Config), places ...string) *serve.Server {
	t.Helper()
	b := &bugs{}
	c := serve.Config{Places: places, Formats: verbs.Formats(), Command: command, Log: b.log}
	if change != nil {
		change(&c)
	}
	s, err := serve.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		b.check(t)
	})
	return s
}

// copyOf copies files of the corpus into a new directory.
func copyOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for to, from := range files {
		b, err := os.ReadFile(filepath.FromSlash("../corpus/" + from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// get asks as the page does.
func get(s http.Handler, path string, change ...func(*http.Request)) (w *httptest.ResponseRecorder) {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = "127.0.0.1:4321"
	for _, c := range change {
		c(r)
	}
	w = httptest.NewRecorder()
	defer func() { // an export that fails on its way breaks the connection
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			panic(p)
		}
	}()
	s.ServeHTTP(w, r)
	return w
}

func api(what string, params ...string) string {
	q := url.Values{}
	for i := 0; i < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}
	return "/api/" + what + "?" + q.Encode()
}

// answer decodes a document.
func answer[T any](t *testing.T, s http.Handler, path string) (doc T) {
	t.Helper()
	w := get(s, path)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return doc
}

const red = "redfile/red1a/a_gzip.red"

// TestNamesOfTheServer: a request is answered only under a name of this machine, or of the server (DNS rebinding).
func TestNamesOfTheServer(t *testing.T) {
	dir := copyOf(t, map[string]string{"a.red": red})
	at := func(host string) func(*http.Request) { return func(r *http.Request) { r.Host = host } }
	local := newServer(t, nil, dir)
	open := newServer(t, func(c *serve.Config) {
		c.Listens, c.Token, c.Hosts = true, "0123456789abcdef", []string{"files.example"}
	}, dir)
	bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer 0123456789abcdef") }
	for host, want := range map[string][2]int{
		"127.0.0.1:4321": {200, 200}, "localhost:99": {200, 200}, "[::1]:4321": {200, 200}, "LOCALHOST": {200, 200},
		"192.168.7.7:80": {421, 200}, "files.example:80": {421, 200}, "evil.example": {421, 421}, "": {421, 421},
		"127.0.0.1.evil.example": {421, 421}, "localhost.evil.example:80": {421, 421}, "[::1].evil.example": {421, 421},
	} {
		got := [2]int{get(local, "/api/places", at(host)).Code, get(open, "/api/places", at(host), bearer).Code}
		if got != want {
			t.Errorf("host %q: got %v, want %v", host, got, want)
		}
	}
}

// TestOtherSites: what a page of another origin asks is refused (CSRF); a person may follow a link to the page.
func TestOtherSites(t *testing.T) {
	s := newServer(t, nil, copyOf(t, map[string]string{"a.red": red}))
	for _, c := range []struct {
		path   string
		header map[string]string
		want   int
	}{
		{"/api/places", nil, 200},
		{"/api/places", map[string]string{"Origin": "http://127.0.0.1:4321"}, 200},
		{"/api/places", map[string]string{"Origin": "http://127.0.0.1:9"}, 403},
		{"/api/places", map[string]string{"Origin": "http://evil.example"}, 403},
		{"/api/places", map[string]string{"Origin": "null"}, 403},
		{"/api/places", map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
		{"/api/places", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"/api/places", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"/api/places", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
			"Sec-Fetch-Dest": "document"}, 403},
		{"/", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
			"Sec-Fetch-Dest": "document"}, 200},
		{"/", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
			"Sec-Fetch-Dest": "iframe"}, 403},
		{"/page/core.js", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403},
	} {
		w := get(s, c.path, func(r *http.Request) {
			for k, v := range c.header {
				r.Header.Set(k, v)
			}
		})
		if w.Code != c.want {
			t.Errorf("%s with %v: got %d, want %d", c.path, c.header, w.Code, c.want)
		}
	}
}

// TestOnlyReading: nothing but GET and HEAD, and no bodies.
func TestOnlyReading(t *testing.T) {
	s := newServer(t, nil, copyOf(t, map[string]string{"a.red": red}))
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE", "PROPFIND"} {
		if w := get(s, "/api/places", func(r *http.Request) { r.Method = method }); w.Code != 405 {
			t.Errorf("%s: got %d, want 405", method, w.Code)
		}
	}
	body := func(n int64) func(*http.Request) {
		return func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), n
		}
	}
	for _, n := range []int64{1, -1, 1 << 40} { // -1: chunked
		if w := get(s, "/api/places", body(n)); w.Code != 413 {
			t.Errorf("a body of %d bytes: got %d, want 413", n, w.Code)
		}
	}
	if w := get(s, "/api/places", func(r *http.Request) { r.Method = "HEAD" }); w.Code != 200 {
		t.Errorf("HEAD: got %d", w.Code)
	}
}

// TestToken: with a token, nothing is answered without it, not even the page; in the address it becomes a cookie.
func TestToken(t *testing.T) {
	const token = "0123456789abcdef"
	dir := copyOf(t, map[string]string{"a.red": red})
	if _, err := serve.New(serve.Config{Places: []string{dir}, Command: command, Listens: true}); err == nil {
		t.Error("a server for other machines was made without a token")
	}
	s := newServer(t, func(c *serve.Config) { c.Listens, c.Token = true, token }, dir)
	for _, path := range []string{"/", "/page/core.js", "/api/places", "/?token=", "/?token=0123456789abcdeF",
		"/api/places?token=" + token, "/nothing"} {
		if w := get(s, path); w.Code != 401 {
			t.Errorf("%s: got %d, want 401", path, w.Code)
		}
	}
	w := get(s, "/?token="+token+"&a=b")
	cookies := w.Result().Cookies()
	if w.Code != 303 || w.Header().Get("Location") != "/?a=b" || len(cookies) != 1 {
		t.Fatalf("got %d to %q with %v", w.Code, w.Header().Get("Location"), cookies)
	}
	if c := cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Domain != "" {
		t.Errorf("the cookie is %v", c)
	}
	if w := get(s, "/api/places", func(r *http.Request) { r.AddCookie(cookies[0]) }); w.Code != 200 {
		t.Errorf("with the cookie: got %d", w.Code)
	}
	wrong := *cookies[0]
	wrong.Value = "0123456789abcdeg"
	if w := get(s, "/api/places", func(r *http.Request) { r.AddCookie(&wrong) }); w.Code != 401 {
		t.Errorf("with a wrong cookie: got %d", w.Code)
	}
	if a, b := serve.NewToken(), serve.NewToken(); a == b || len(a) != 32 {
		t.Errorf("tokens %s and %s", a, b)
	}
}

// TestHeaders: every answer, errors too, forbids what the page does not need; the page refers to nothing elsewhere.
func TestHeaders(t *testing.T) {
	s := newServer(t, nil, copyOf(t, map[string]string{"a.red": red}))
	for _, path := range []string{"/", "/page/core.js", "/api/places", "/nothing", "/api/rows"} {
		h := get(s, path).Header()
		for key, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"} {
			if h.Get(key) != want {
				t.Errorf("%s: %s is %q", path, key, h.Get(key))
			}
		}
		policy := h.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") ||
			strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
	}
	files, err := filepath.Glob("page/*")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "http://www.w3.org/2000/svg", "")
		for _, elsewhere := range []string{"http://", "https://", "src=\"//", "@import", "eval(", "innerHTML",
			"insertAdjacentHTML", "document.write", "outerHTML"} {
			if strings.Contains(text, elsewhere) {
				t.Errorf("%s has %s", f, elsewhere)
			}
		}
		if n := bytes.Count(b, []byte("\n")); n > 600 {
			t.Errorf("%s has %d lines; at most 600", f, n)
		}
		if w := get(s, "/page/"+filepath.Base(f)); w.Code != 200 || !bytes.Equal(w.Body.Bytes(), b) {
			t.Errorf("%s is not served", f)
		}
	}
}

// TestEnd: when its context ends, Run ends soon and without an error, although a client is in the middle of an answer.
func TestEnd(t *testing.T) {
	s := newServer(t, nil, copyOf(t, map[string]string{"a.red": red}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, l, 0) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET /api/pla") // never finished
	r, err := http.Get("http://" + l.Addr().String() + "/")
	if err != nil || r.StatusCode != 200 {
		t.Fatal(r, err)
	}
	r.Body.Close()
	begin := time.Now()
	cancel()
	select {
	case err := <-ended:
		if err != nil || time.Since(begin) > 3*time.Second {
			t.Errorf("ended with %v after %s", err, time.Since(begin))
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the port is still open")
	}
}

// TestIdle: a server that nobody asks ends by itself, and not before.
func TestIdle(t *testing.T) {
	s := newServer(t, nil, copyOf(t, map[string]string{"a.red": red}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	begin := time.Now()
	go func() { ended <- s.Run(t.Context(), l, 300*time.Millisecond) }()
	time.Sleep(200 * time.Millisecond)
	if r, err := http.Get("http://" + l.Addr().String() + "/"); err == nil {
		r.Body.Close()
	} else {
		t.Error(err)
	}
	select {
	case err := <-ended:
		if err != nil || time.Since(begin) < 500*time.Millisecond {
			t.Errorf("ended with %v after %s", err, time.Since(begin))
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
}

// TestSlowClients: a client that does not finish its request is cut off, and one with very long headers, too.
func TestSlowClients(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a time-out of 5 s")
	}
	s := newServer(t, nil, copyOf(t, map[string]string{"a.red": red}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Run(t.Context(), l, 0)
	for what, text := range map[string]string{"half a request": "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
		"long headers": "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n"} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, text)
		c.SetReadDeadline(time.Now().Add(20 * time.Second))
		b, err := io.ReadAll(c)
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Errorf("%s: still open after 20 s", what)
		}
		if bytes.Contains(b, []byte("200 OK")) {
			t.Errorf("%s: got %q", what, b)
		}
	}
}

// run runs a command line on the local file system.
func run(t *testing.T, args ...string) int {
	t.Helper()
	var errs bytes.Buffer
	status, _ := verbs.RunApp(t.Context(), verbs.NewApp(nil, io.Discard, &errs), args)
	if status != 0 {
		t.Log(&errs)
	}
	return status
}

// TestIdleConnections: a connection that asks for nothing more gives up its place.
func TestIdleConnections(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for 15 seconds")
	}
	s := newServer(t, nil, lines(t, 10))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, l, 0) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(40 * time.Second))
	if _, err := fmt.Fprintf(c, "GET /api/places HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); err != nil || !bytes.HasPrefix(b, []byte("HTTP/1.1 200")) {
		t.Errorf("the connection was not ended: %v %.100s", err, b)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
