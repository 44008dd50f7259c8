package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stoa/fault"
	"stoa/internal/check"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
)

// commandResult is what a command said.
type commandResult struct {
	Command string          `json:"command"` // the line that a person would type
	Status  int             `json:"status"`
	Doc     json.RawMessage `json:"doc"`             // its document (-f json); null: it has none
	Notes   []string        `json:"notes,omitempty"` // what it said on standard error
	// Incidents are the findings of verify by cause, if they are not very many.
	Incidents []incident `json:"incidents,omitempty"`
}

// incident is what several findings have in common.
type incident struct {
	Findings int               `json:"findings"`
	Codes    []check.CodeCount `json:"codes"`
	Object   string            `json:"object"`
	Offset   int64             `json:"offset"`
	Length   int64             `json:"length"`
	Lost     int64             `json:"lost"` // rows or cells; -1: not known
}

// maxDoc is how many bytes a document of a command may have.
const maxDoc = 32 << 20

// verb is a verb of the command that the page uses, and the parameters that it takes besides a name.
type verb struct {
	verb   string   // of the command; "": its own name
	args   []string // before the name
	takes  []string // where, columns, analyze, at, other, code
	noName bool
}

var verbs = map[string]verb{
	"ls":      {},
	"schema":  {takes: []string{"at"}},
	"meta":    {takes: []string{"at"}},
	"stats":   {args: []string{"--damaged", "null-cells"}, takes: []string{"at"}},
	"history": {},
	"census":  {},
	"loads":   {verb: "ls", args: []string{"--segments"}},
	"explain": {takes: []string{"where", "columns", "analyze", "at"}},
	"diff":    {args: []string{"--damaged", "null-cells"}, takes: []string{"other"}},
	"finding": {takes: []string{"code"}, noName: true},
}

// line returns the command line that a request asks for.
func (s *Server) line(q query) ([]string, error) {
	name := q.text("verb")
	v, ok := verbs[name]
	if !ok {
		return nil, asked("there is no verb %q here", name)
	}
	args := append([]string{cmp.Or(v.verb, name)}, v.args...)
	others := []string{}
	for _, key := range v.takes {
		given := q.text(key)
		switch {
		case given == "":
		case len(given) > maxName || strings.ContainsRune(given, 0):
			return nil, asked("%s is too long", key)
		case key == "where":
			if _, err := pred.Parse(given); err != nil {
				return nil, err
			}
			args = append(args, "--where="+given)
		case key == "analyze" && given == "true":
			args = append(args, "--analyze")
		case key == "columns", key == "at":
			args = append(args, "--"+key+"="+given)
		case key == "other":
			if err := s.tree.Check(given); err != nil {
				return nil, err
			}
			others = append(others, given)
		case key == "code":
			args = append(args, "--", given)
		}
	}
	if v.noName {
		return slices.Insert(args, 1, "-f", "json"), nil
	}
	path, err := s.name(q)
	if err != nil {
		return nil, err
	}
	args = append(args, "-f", "json", "--", path)
	return append(args, others...), nil
}

// commandDoc runs a verb.
func (s *Server) commandDoc(ctx context.Context, q query) (any, error) {
	args, err := s.line(q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, notes := &Bounded{Most: maxDoc, Full: cancel}, &Bounded{Most: maxNotes}
	line := shown(args)
	if slices.Contains(args, "--analyze") {
		args = s.holding(args)
	}
	r := &commandResult{Command: line, Status: s.Command(ctx, s.tree, args, out, notes)}
	if out.Over {
		return nil, fault.New(fault.Limit, fault.Span{}, "", "the answer has more than %d bytes", maxDoc)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r.Notes = linesOf(notes)
	if json.Valid(out.Bytes()) {
		r.Doc = out.Bytes()
	}
	return r, nil
}

// holding returns a command line that reads rows with a limit on those that are held at a time.
func (s *Server) holding(args []string) []string {
	return slices.Insert(slices.Clone(args), 1, fmt.Sprintf("--memory=%d", cmp.Or(s.Limits.Opening, heldRows)))
}

// heldRows is how many bytes of rows a verb holds at a time, if no limit is set.
const heldRows = 256 << 20

// verify streams the findings of verify as they come, a line of JSON each; the last line has the status.
func (s *Server) verify(w http.ResponseWriter, r *http.Request) {
	q := query{r}
	name, err := s.name(q)
	args := []string{"verify", "-f", "jsonl"}
	switch q.text("depth") {
	case "quick":
		args = append(args, "--quick")
	case "deep":
		args = append(args, "--deep")
	case "", "sums":
	default:
		err = errors.Join(err, asked("depth is quick, sums or deep"))
	}
	if err != nil {
		writeError(w, err)
		return
	}
	s.follow(w, r, name, append(args, "--", name))
}

// recoverTo writes what can be read of a table to a new file in the directory that may be written to.
func (s *Server) recoverTo(w http.ResponseWriter, r *http.Request) {
	q := query{r}
	from, err := s.target(q)
	as := q.text("as")
	switch {
	case err != nil:
	case s.Write == "":
		writeJSON(w, http.StatusForbidden, errorDoc{Error: "this server does not write: it needs --allow-write DIR",
			Class: "refused"})
		return
	case as == "" || len(as) > maxAs || as != safe(as) || as[0] == '.' || as[0] == '-':
		err = asked("as is no name of a new file: letters, digits, points, hyphens and underscores")
	}
	if err != nil {
		writeError(w, err)
		return
	}
	args := []string{"recover"}
	if q.text("nulls") == "true" {
		args = append(args, "--damaged=null-cells")
	}
	if from.at != "" {
		args = append(args, "--at="+from.at)
	}
	s.follow(w, r, from.name, append(args, "-o", filepath.Join(s.Write, as), "--", from.name))
}

const maxAs = 120 // bytes of the name of a file that is written

// follow runs a command line about name, and streams its lines of JSON; every half second how much it has read; and in
// the last line how it ended.
func (s *Server) follow(w http.ResponseWriter, r *http.Request, name string, args []string) {
	s.stream(w, r, "application/x-ndjson", func(ctx context.Context, out io.Writer) {
		notes := &Bounded{Most: maxNotes}
		lines := &flushing{Writer: out, w: w, found: Bounded{Most: maxGrouped}}
		read := &tally{Tree: s.tree, of: s.tree.sizeOf(ctx, name)}
		ended := make(chan struct{})
		var reported sync.WaitGroup
		reported.Go(func() { read.report(lines, ended) })
		status := s.Command(ctx, read, args, lines, notes)
		close(ended)
		reported.Wait()
		b, _ := json.Marshal(commandResult{Command: shown(args), Status: status, Notes: linesOf(notes),
			Incidents: lines.incidents()})
		fmt.Fprintf(lines, "%s\n", b)
	})
}

// exports are the forms in which rows are exported, and their media types.
var exports = map[string]string{"csv": "text/csv", "jsonl": "application/x-ndjson", "json": "application/json",
	"tsv": "text/tab-separated-values", "arrow": "application/vnd.apache.arrow.stream"}

// export streams rows as a file. An export that fails breaks the connection, so that it does not look whole. One that
// leaves out what is damaged, as asked, is named so, and its trailer Stoa-Lost says what it lacks.
func (s *Server) export(w http.ResponseWriter, r *http.Request) {
	q := query{r}
	from, err := s.target(q)
	name := from.name
	form := q.text("form")
	kind, ok := exports[form]
	if err == nil && !ok {
		err = asked("there is no form %q", form)
	}
	args := []string{"cat", "-f", form}
	around := q.text("damaged")
	switch around {
	case "", "fail":
		around = ""
	case "skip-rows", "null-cells":
		args = append(args, "--damaged="+around)
	default:
		err = errors.Join(err, asked("damaged is fail, skip-rows or null-cells"))
	}
	if from.at != "" {
		args = append(args, "--at="+from.at)
	}
	if where := strings.TrimSpace(q.text("where")); where != "" && err == nil {
		_, err = pred.Parse(where)
		args = append(args, "--where="+where)
	}
	if err != nil {
		writeError(w, err)
		return
	}
	base := safe(path.Base(name[strings.LastIndexByte(name, '#')+1:]))
	if around != "" {
		base += "-" + around
		w.Header().Set("Trailer", lostTrailer)
	}
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", base+"."+form))
	s.stream(w, r, kind, func(ctx context.Context, out io.Writer) {
		notes := &Bounded{Most: maxNotes}
		late := &held{Writer: out}
		status := s.Command(ctx, s.tree, s.holding(append(args, "--", name)), late, notes)
		switch {
		case status == 0:
			late.send()
			return
		case status == damageStatus && around != "" && (late.sent || len(late.first) > 0):
			late.send()
			lines := linesOf(notes)
			w.Header().Set(lostTrailer, cut([]byte(lines[len(lines)-1])))
			return
		case late.sent:
			panic(http.ErrAbortHandler)
		}
		w.Header().Del("Trailer")
		w.Header().Del("Content-Disposition")
		doc := errorDoc{Error: strings.Join(linesOf(notes), "\n"), Class: "failed"}
		writeJSON(w, http.StatusUnprocessableEntity, doc)
	})
}

const (
	damageStatus = 3 // of a command that met damage
	lostTrailer  = "Stoa-Lost"
)

// held keeps the beginning of an export, so that one that fails early can be refused with the reason.
type held struct {
	io.Writer
	first []byte
	sent  bool
}

const maxHeld = 256 << 10

func (h *held) Write(p []byte) (int, error) {
	if !h.sent && len(h.first)+len(p) <= maxHeld {
		h.first = append(h.first, p...)
		return len(p), nil
	}
	if err := h.send(); err != nil {
		return 0, err
	}
	return h.Writer.Write(p)
}

// send sends what is kept.
func (h *held) send() error {
	h.sent = true
	_, err := h.Writer.Write(h.first)
	h.first = nil
	return err
}

// safe returns a name without characters that have a meaning in names of files or headers.
func safe(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, name)
}

// stream answers with something long: each part must be read within writeTime.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, kind string, do func(context.Context, io.Writer)) {
	ctx, cancel := context.WithTimeout(r.Context(), longTime)
	defer cancel()
	select {
	case s.long <- struct{}{}:
		defer func() { <-s.long }()
	default:
		writeError(w, errBusy)
		return
	}
	w.Header().Set("Content-Type", kind)
	if r.Method == http.MethodHead {
		return
	}
	c := http.NewResponseController(w)
	do(ctx, &patient{w, c})
	c.SetWriteDeadline(time.Now().Add(writeTime)) // what is left in buffers is sent after a part may have taken long
}

// patient gives each write some time.
type patient struct {
	w io.Writer
	c *http.ResponseController
}

func (p *patient) Write(b []byte) (int, error) {
	p.c.SetWriteDeadline(time.Now().Add(writeTime))
	return p.w.Write(b)
}

// tally is a tree that counts the bytes that are read.
type tally struct {
	store.Tree
	bytes atomic.Int64
	of    int64 // all bytes; 0: not known
}

func (t *tally) Unwrap() store.Tree { return t.Tree }

func (t *tally) Open(ctx context.Context, name string) (store.Source, error) {
	src, err := t.Tree.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return tallied{src, t}, nil
}

// report writes every half second how many bytes were read, until ended is closed.
func (t *tally) report(w io.Writer, ended <-chan struct{}) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			fmt.Fprintf(w, "{\"read\":%d,\"of\":%d}\n", t.bytes.Load(), t.of)
		}
	}
}

type tallied struct {
	store.Source
	t *tally
}

func (s tallied) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := s.Source.ReadAt(ctx, p, off)
	s.t.bytes.Add(int64(n))
	return n, err
}

// Foresee passes the ranges on.
func (s tallied) Foresee(ctx context.Context, ranges []store.Range) (done func()) {
	return store.Foresee(ctx, s.Source, ranges)
}

// flushing sends every line at once. It is safe for concurrent use.
type flushing struct {
	io.Writer
	w     http.ResponseWriter
	mu    sync.Mutex
	found Bounded // the lines, to be grouped at the end
}

// maxGrouped is how many bytes of findings are grouped.
const maxGrouped = 4 << 20

// incidents groups the findings that were written, unless they are very many or not of verify.
func (f *flushing) incidents() (out []incident) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.found.Over {
		return nil
	}
	var all []region.Finding
	for line := range bytes.Lines(f.found.Bytes()) {
		d := struct {
			Code, Severity, Object, Path, Message, Part, Table, Column string
			Offset, Length                                             int64
			From, To, Lost                                             *int64
		}{}
		if json.Unmarshal(line, &d) != nil || d.Code == "" {
			continue
		}
		known := func(n *int64) int64 {
			if n == nil {
				return -1
			}
			return *n
		}
		severity := map[string]region.Severity{"error": region.Error, "warning": region.Warning}[d.Severity]
		all = append(all, region.Finding{Code: d.Code, Severity: severity, Path: d.Path, Message: d.Message,
			At: fault.Span{Object: d.Object, Off: d.Offset, Len: d.Length}, Part: d.Part,
			Table: d.Table, Column: d.Column,
			Rows: [2]int64{known(d.From), known(d.To)}, Lost: known(d.Lost)})
	}
	for _, in := range check.Fold(all) {
		out = append(out, incident{in.N, in.Codes, in.At.Object, in.At.Off, in.At.Len, in.Lost})
	}
	return out
}

func (f *flushing) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found.Write(b)
	n, err := f.Writer.Write(b)
	http.NewResponseController(f.w).Flush()
	return n, err
}
