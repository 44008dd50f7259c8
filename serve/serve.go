// Package serve is a page in the browser for what a place holds: tables, their rows, and the anatomy and health of
// their files, byte by byte. It reads only, and only what lies below the places that it is given.
//
// The documents that it shows are those of the command (-f json), from a function that the caller gives; rows and
// anatomy come from package stoa. The page itself is plain HTML, CSS and JavaScript in page/, embedded, and needs
// nothing from anywhere else.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
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
	Version string // of the command, for the page's foot
	// Listens: the server is not only for this machine. Then Token must be set.
	Listens bool
	Token   string   // what every request must have; "" = nothing
	Hosts   []string // names of this server, besides localhost and addresses by numbers
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
	idleTime       = 2 * time.Minute
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
