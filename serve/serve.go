// Package serve is a page in the browser for what a place holds: tables, their rows, and the anatomy and health of
// their files, byte by byte. It reads only, and only what lies below the places that it is given.
//
// The documents that it shows are those of the command (-f json), from a function that the caller gives; rows and
// anatomy come from package stoa. The page itself is plain HTML, CSS and JavaScript in page/, embedded, and needs
// nothing from anywhere else.
package serve

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"stoa"
	"stoa/format"
	"stoa/store"
)

// Command runs a command line of stoa, such as "ls", "data/", "-f", "json", that reads tree instead of the local file
// system. It returns the exit status.
type Command func(ctx context.Context, tree store.Tree, args []string, stdout, stderr io.Writer) int

// Config is what a Server serves, and to whom.
type Config struct {
	Places  []string        // files and directories
	Formats []format.Format // nil = stoa.Formats
	Limits  format.Limits
	Command Command
	SQL     sqlRunner // nil: there is no database
	Version string    // of the command, for the page's foot
	// Listens: the server is not only for this machine. Then Token must be set.
	Listens bool
	Token   string   // what every request must have; "" = nothing
	Hosts   []string // names of this server, besides localhost and addresses by numbers
	// Write is a directory in which the page may make new files; "": it writes nothing.
	Write string
	// Log reports panics and what else a request could not be told; nil = nobody.
	Log func(string)
}

// The limits of a server. Of the requests that read files only maxWork run at a time, and maxWaiting wait for that;
// others are refused at once.
const (
	maxConnections = 128
	maxWaiting     = 64
	maxLong        = 4 // exports and verifications at a time
	maxHeader      = 16 << 10
	headerTime     = 5 * time.Second
	idleTime       = 15 * time.Second // of a connection without a request: others may wait for its place
	workTime       = time.Minute      // for an answer
	longTime       = 12 * time.Hour   // for an export or a verification, as long as somebody reads it
	writeTime      = 30 * time.Second // for each part of an answer
	endTime        = 700 * time.Millisecond
)

// maxWork is how many requests read files at a time.
var maxWork = max(4, runtime.NumCPU())

// Server is an http.Handler.
type Server struct {
	Config
	tree    *Tree
	handler http.Handler
	work    chan struct{}
	waiting chan struct{}
	long    chan struct{} // exports and verifications
	tables  cache[*opened]
	files   cache[*Anatomy]
}

// New returns a server. It must be closed.
func New(c Config) (*Server, error) {
	if c.Listens && c.Token == "" {
		return nil, errors.New("a server that is not only for this machine needs a token")
	}
	if len(c.Places) == 0 || c.Command == nil {
		return nil, errors.New("nothing to serve")
	}
	tree, err := NewTree(c.Places)
	if err != nil {
		return nil, err
	}
	s := &Server{Config: c, tree: tree, work: make(chan struct{}, maxWork), waiting: make(chan struct{}, maxWaiting),
		long: make(chan struct{}, maxLong)}
	s.tables = cache[*opened]{most: 8, end: func(o *opened) { o.release() }}
	s.files = cache[*Anatomy]{most: 4, end: func(*Anatomy) {}}
	s.handler = s.recovering(s.guard(s.routes()))
	return s, nil
}

// Close closes the files.
func (s *Server) Close() error {
	s.tables.clear()
	s.files.clear()
	return s.tree.Close()
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// options are how tables are opened.
func (s *Server) options() stoa.OpenOptions {
	return stoa.OpenOptions{Formats: s.Formats, Tree: s.tree, Limits: s.Limits, KeepPages: 32 << 20}
}

// recovering answers a request that panicked, which is a bug, and reports it.
func (s *Server) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p)
			}
			if s.Log != nil {
				s.Log(fmt.Sprintf("%s: a bug: %v\n%s", r.URL.Path, p, debug.Stack()))
			}
			doc := errorDoc{Error: fmt.Sprint("a bug in stoa: ", p), Class: "bug"}
			writeJSON(w, http.StatusInternalServerError, doc)
		}()
		next.ServeHTTP(w, r)
	})
}

// Run answers requests on l until ctx ends, or until nobody has asked for anything for the time idle (0: for ever), and
// returns nil then. Requests that are being answered are ended.
func (s *Server) Run(ctx context.Context, l net.Listener, idle time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rest := newRest(idle, cancel)
	h := &http.Server{
		Handler:           rest.around(s),
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       headerTime,
		WriteTimeout:      writeTime, // of the page's files and of refusals; what takes longer says so
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          nil,
	}
	ended := make(chan struct{})
	defer close(ended)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
		case <-ended:
		}
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
		defer cancel()
		if h.Shutdown(late) != nil {
			h.Close()
		}
	}()
	err := h.Serve(&limited{Listener: l, places: make(chan struct{}, maxConnections)})
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		<-stopped
		return nil
	}
	return err
}

// rest ends a server when nobody has asked for anything for some time.
type rest struct {
	idle  time.Duration
	timer *time.Timer
	mu    sync.Mutex
	busy  int // requests that are being answered
}

func newRest(idle time.Duration, end func()) *rest {
	r := &rest{idle: idle}
	if idle > 0 {
		r.timer = time.AfterFunc(idle, end)
	}
	return r
}

func (r *rest) around(next http.Handler) http.Handler {
	if r.timer == nil {
		return next
	}
	count := func(by int) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.busy += by; r.busy > 0 {
			r.timer.Stop()
		} else {
			r.timer.Reset(r.idle)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		count(1)
		defer count(-1)
		next.ServeHTTP(w, q)
	})
}

// limited is a listener with at most so many connections at a time; others wait to be accepted.
type limited struct {
	net.Listener
	places chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	l.places <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &counted{Conn: c, release: sync.OnceFunc(func() { <-l.places })}, nil
}

type counted struct {
	net.Conn
	release func()
}

func (c *counted) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// NewToken returns a token that cannot be guessed.
func NewToken() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// cookieOf is the name of the cookie that has the token. Cookies know no ports; so that two servers of one machine do
// not overwrite each other's, the name does.
func cookieOf(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	return "stoa-token-" + port
}

// policy is the content security policy: nothing but what this server has, no script or style in the page itself, no
// frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard lets pass what the page of this very server asks for:
//   - GET and HEAD, without a body; POST only for what writes, if anything may;
//   - under a name of this server (Host): a page elsewhere whose name was made to lead here (DNS rebinding) has
//     another;
//   - from this origin (Origin, Sec-Fetch-Site), or typed by a person;
//   - with the token, if there is one.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case !s.knows(r.Host):
			refuse(w, http.StatusMisdirectedRequest, "this server has another name: a page elsewhere may have led here")
		case s.writes(r):
			if !sameOrigin(r) || r.ContentLength != 0 || r.Header.Get("Origin") == "" || r.Header.Get(ownHeader) == "" {
				refuse(w, http.StatusForbidden, "only the page of this server may write")
			} else if s.Token == "" || s.admit(w, r) {
				next.ServeHTTP(w, r)
			}
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "only reading (GET) is served")
		case r.ContentLength != 0:
			refuse(w, http.StatusRequestEntityTooLarge, "a request has no body")
		case !sameOrigin(r):
			refuse(w, http.StatusForbidden, "another site asks")
		case s.Token != "" && !s.admit(w, r):
			return
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// ownHeader is what a request that writes must have. A page of another origin cannot set it without asking first, and
// is refused then.
const ownHeader = "X-Stoa"

// writes reports whether a request is one that writes, on a server that does.
func (s *Server) writes(r *http.Request) bool {
	return s.Write != "" && r.Method == http.MethodPost && r.URL.Path == "/api/recover"
}

// refuse also ends the connection: who is refused holds none.
func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Connection", "close")
	writeJSON(w, status, errorDoc{Error: why, Class: "refused"})
}

// knows reports whether host, of a request, is a name of this server. An address by numbers always is: names are what
// can be made to lead elsewhere.
func (s *Server) knows(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "localhost" {
		return true
	}
	if ip := net.ParseIP(name); ip != nil {
		return s.Listens || ip.IsLoopback()
	}
	for _, h := range s.Hosts {
		if strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}

// sameOrigin reports whether a page of this server asks, or no page at all. A person may follow a link elsewhere to
// the page itself.
func sameOrigin(r *http.Request) bool {
	if o := r.Header.Get("Origin"); o != "" {
		u, err := url.Parse(o)
		if err != nil || u.Host != r.Host {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document"
}

// admit reports whether a request has the token: in a cookie, or in the header Authorization. A token in the address
// becomes a cookie, and disappears from the address.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	if given := r.URL.Query().Get("token"); r.URL.Path == "/" && given != "" {
		if !s.right(given) {
			refuse(w, http.StatusUnauthorized, "the token is wrong")
			return false
		}
		http.SetCookie(w, &http.Cookie{Name: cookieOf(r), Value: given, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteLaxMode}) // a Strict one would be missing after a link elsewhere was followed
		q := r.URL.Query()
		q.Del("token")
		to := url.URL{Path: "/", RawQuery: q.Encode()}
		w.Header().Set("Location", to.String())
		w.WriteHeader(http.StatusSeeOther)
		return false
	}
	if given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && s.right(given) {
		return true
	}
	if c, err := r.Cookie(cookieOf(r)); err == nil && s.right(c.Value) {
		return true
	}
	refuse(w, http.StatusUnauthorized, "a token is needed: open the address that stoa serve printed")
	return false
}

func (s *Server) right(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.Token)) == 1
}
