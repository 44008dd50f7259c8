package serve

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"stoa"
	"stoa/fault"
	"stoa/store"
)

// query are the parameters of a request.
type query struct{ r *http.Request }

func (q query) text(key string) string { return q.r.URL.Query().Get(key) }

// number returns a parameter between least and most; preset if it is not given.
func (q query) number(key string, preset, least, most int64) (int64, error) {
	text := q.text(key)
	if text == "" {
		return preset, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, asked("%s=%s is not a number from %d to %d", key, text, least, most)
	}
	return n, nil
}

// handler answers a request with a document, or an error.
type handler func(ctx context.Context, q query) (any, error)

func (s *Server) routes() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /{$}", s.static)
	m.HandleFunc("GET /page/{file}", s.static)
	for name, h := range map[string]handler{
		"places": s.placesDoc, "files": s.filesDoc, "rows": s.rowsDoc, "anatomy": s.anatomyDoc, "map": s.mapDoc,
		"at": s.atDoc, "parts": s.partsDoc, "bytes": s.bytesDoc, "search": s.searchDoc, "command": s.commandDoc,
		"values": s.valuesDoc, "reads": s.readsDoc, "sql": s.sqlDoc,
	} {
		m.HandleFunc("GET /api/"+name, s.answer(h))
	}
	m.HandleFunc("GET /api/verify", s.verify)
	m.HandleFunc("GET /api/export", s.export)
	m.HandleFunc("POST /api/recover", s.recoverTo)
	m.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusNotFound, errorDoc{Error: "there is no such address", Class: "missing"})
	})
	return m
}

// static serves the files of the page.
func (s *Server) static(w http.ResponseWriter, r *http.Request) {
	name := cmp.Or(r.PathValue("file"), "index.html")
	text, ok := pageFiles()[name]
	if !ok {
		writeJSON(w, http.StatusNotFound, errorDoc{Error: "there is no such file", Class: "missing"})
		return
	}
	kinds := map[string]string{".html": "text/html", ".css": "text/css", ".js": "text/javascript",
		".svg": "image/svg+xml"}
	w.Header().Set("Content-Type", kinds[path.Ext(name)]+"; charset=utf-8")
	io.WriteString(w, text)
}

// answer returns the http.HandlerFunc of a handler: it waits for its turn, and has only so much time.
func (s *Server) answer(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(workTime + writeTime))
		ctx, cancel := context.WithTimeout(r.Context(), workTime)
		defer cancel()
		release, err := s.turn(ctx)
		if err != nil {
			writeError(w, err)
			return
		}
		doc, err := func() (any, error) {
			defer release()
			return h(stoa.Session(ctx), query{r})
		}()
		if err != nil {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				err = fault.New(fault.Limit, fault.Span{}, "", "this took longer than %s", workTime)
			}
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, doc)
	}
}

// turn waits until fewer than maxWork requests read files.
func (s *Server) turn(ctx context.Context) (release func(), err error) {
	select {
	case s.work <- struct{}{}:
		return func() { <-s.work }, nil
	default:
	}
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		return nil, errBusy
	}
	select {
	case s.work <- struct{}{}:
		return func() { <-s.work }, nil
	case <-ctx.Done():
		return nil, errBusy
	}
}

// maxName is how long the name of a table may be.
const maxName = 4096

// name returns the parameter name: PATH or PATH#TABLE, where PATH is a place or lies below one. Whatever it says
// further on, it is read through s.tree.
func (s *Server) name(q query) (string, error) {
	name := q.text("name")
	switch {
	case name == "":
		return "", asked("name is missing")
	case len(name) > maxName || !utf8.ValidString(name):
		return "", asked("this is no name")
	}
	return name, s.tree.Check(name)
}

// file returns the parameter name, which must be that of a file, and what is known about it.
func (s *Server) file(ctx context.Context, q query) (store.Info, error) {
	name := q.text("name")
	if name == "" {
		return store.Info{}, asked("name is missing")
	}
	info, err := s.tree.Stat(ctx, name)
	if err == nil && info.Dir {
		err = asked("%s is a directory", name)
	}
	return info, err
}

// placesDoc says what is served.
func (s *Server) placesDoc(ctx context.Context, _ query) (any, error) {
	type placeDoc struct {
		Name string `json:"name"`
		Dir  bool   `json:"dir"`
		Size int64  `json:"size"`
	}
	docs := []placeDoc{}
	for _, name := range s.tree.Places() {
		info, err := s.tree.Stat(ctx, name)
		if err != nil {
			return nil, err
		}
		docs = append(docs, placeDoc{name, info.Dir, info.Size})
	}
	return map[string]any{"places": docs, "version": s.Version, "write": s.Write, "sql": s.SQL != nil}, nil
}

// maxFiles is how many files of a directory are shown.
const maxFiles = 5000

// filesDoc lists the files of a directory and, unless it holds very many, those below it.
func (s *Server) filesDoc(ctx context.Context, q query) (any, error) {
	name := q.text("name")
	type fileDoc struct {
		Name string `json:"name"`
		Dir  bool   `json:"dir,omitempty"`
		Size int64  `json:"size"`
	}
	docs, cut := []fileDoc{}, false
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		for info, err := range s.tree.List(ctx, dir) {
			if err != nil {
				return err
			}
			if len(docs) == maxFiles {
				cut = true
				return nil
			}
			if !info.Dir {
				docs = append(docs, fileDoc{Name: info.Name, Size: info.Size})
			} else if depth < 32 {
				if err := walk(info.Name, depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := walk(name, 0); err != nil {
		return nil, err
	}
	return map[string]any{"files": docs, "cut": cut}, nil
}

// anatomy returns the structure of a file, from the cache if the file is still the same.
func (s *Server) anatomy(ctx context.Context, q query) (*Anatomy, error) {
	info, err := s.file(ctx, q)
	if err != nil {
		return nil, err
	}
	return s.anatomyOf(ctx, info, q.text("pages") == "true")
}

// anatomyOf returns the anatomy of a file, which is kept.
func (s *Server) anatomyOf(ctx context.Context, info store.Info, pages bool) (*Anatomy, error) {
	key := fmt.Sprintf("%t %s %s", pages, info.Stamp, info.Name)
	if a, ok := s.files.get(key, func(*Anatomy) {}); ok {
		return a, nil
	}
	a, err := Describe(ctx, info.Name, info.Size, stoa.DescribeOptions{OpenOptions: s.options(), Pages: pages})
	if err == nil {
		s.files.put(key, a)
	}
	return a, err
}

func (s *Server) anatomyDoc(ctx context.Context, q query) (any, error) { return s.anatomy(ctx, q) }

// maxSegments is how many segments of a map are sent at a time.
const maxSegments = 4000

func (s *Server) mapDoc(ctx context.Context, q query) (any, error) {
	a, err := s.anatomy(ctx, q)
	if err != nil {
		return nil, err
	}
	from, err1 := q.number("from", 0, 0, a.Size)
	to, err2 := q.number("to", a.Size, 0, 1<<62)
	n, err3 := q.number("n", 1000, 1, maxSegments)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return map[string]any{"from": from, "to": min(to, a.Size), "segments": a.Map(from, to, int(n))}, nil
}

func (s *Server) atDoc(ctx context.Context, q query) (any, error) {
	a, err := s.anatomy(ctx, q)
	if err != nil {
		return nil, err
	}
	off, err1 := q.number("offset", -1, 0, max(0, a.Size-1))
	id, err2 := q.number("node", -1, 0, int64(len(a.nodes)))
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	path := []Node{}
	switch {
	case off >= 0:
		path = append(path, a.At(off)...)
	case id >= 0:
		path = append(path, a.Path(int(id))...)
	default:
		return nil, asked("offset or node is missing")
	}
	return map[string]any{"path": a.explained(path)}, nil
}

func (s *Server) partsDoc(ctx context.Context, q query) (any, error) {
	a, err := s.anatomy(ctx, q)
	if err != nil {
		return nil, err
	}
	id, err1 := q.number("node", -1, -1, int64(len(a.nodes)))
	skip, err2 := q.number("skip", 0, 0, maxNodes)
	n, err3 := q.number("n", 200, 1, 1000)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return map[string]any{"parts": a.Parts(int(id), int(skip), int(n))}, nil
}

// searchDoc searches a file's structures: by name, byte and row, or, for a predicate, by the values of its table.
func (s *Server) searchDoc(ctx context.Context, q query) (any, error) {
	a, err := s.anatomy(ctx, q)
	if err != nil {
		return nil, err
	}
	what := strings.TrimSpace(q.text("q"))
	where := valueSearch(what)
	if where == nil {
		found, err := a.Search(what, 200)
		return map[string]any{"nodes": found}, err
	}
	table := target{name: cmp.Or(q.text("table"), a.Object)}
	if err := s.tree.Check(table.name); err != nil {
		return nil, err
	}
	if path, _, _ := strings.Cut(table.name, "#"); path != a.Object {
		return nil, fault.Invalidf("values are searched in tables of one file; Rows has a filter")
	}
	t, err := s.table(ctx, table)
	if err != nil {
		return nil, err
	}
	defer t.release()
	if err := t.count(ctx); err != nil {
		return nil, err
	}
	lost := &losses{at: t.at}
	rows, cut, err := findRows(ctx, t.Table, t.rows(), where, lost)
	if err != nil {
		return nil, err
	}
	nodes := a.find(200, func(d *Node) bool {
		if d.From == nil || d.Column != "" && !mentions(where, d.Column) {
			return false
		}
		k, _ := slices.BinarySearch(rows, *d.From)
		return k < len(rows) && d.has(rows[k])
	})
	return struct {
		Nodes []Node  `json:"nodes"`
		Rows  []int64 `json:"rows"`
		Cut   bool    `json:"cut"`
		lostDoc
	}{nodes, rows, cut, t.told(lost)}, nil
}

// sqlDoc runs a query in SQL.
func (s *Server) sqlDoc(ctx context.Context, q query) (any, error) {
	return runSQL(ctx, s.SQL, s.tree.Places(), q.text("query"))
}

// bytesDoc is a part of a file in hexadecimal, and the structures that own it.
func (s *Server) bytesDoc(ctx context.Context, q query) (any, error) {
	info, err := s.file(ctx, q)
	if err != nil {
		return nil, err
	}
	off, err1 := q.number("offset", 0, 0, info.Size)
	n, err2 := q.number("length", 512, 1, 4096)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	src, err := s.tree.Open(ctx, info.Name)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	b := make([]byte, min(n, info.Size-off))
	got, err := src.ReadAt(ctx, b, off)
	if err != nil && err != io.EOF {
		return nil, err
	}
	a, err := s.anatomy(ctx, q)
	if err != nil { // a file without a structure that is known has bytes nevertheless
		a = &Anatomy{}
	}
	return map[string]any{"offset": off, "size": info.Size, "hex": hex.EncodeToString(b[:got]),
		"owners": a.explained(a.Leaves(off, off+int64(got), 1000))}, nil
}
