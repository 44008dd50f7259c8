package serve

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"stoa"
	"stoa/internal/fit"
	"stoa/internal/sorted"
	"stoa/pred"
	"stoa/store"
)

// The limits of a scan that is drawn.
const (
	readsTime  = 20 * time.Second
	maxReads   = 20_000 // runs of bytes of all files
	maxVisited = 200    // files
)

// readsResult says which bytes a scan read.
type readsResult struct {
	Rows    int64      `json:"rows"`
	Seconds float64    `json:"seconds"`
	Ended   bool       `json:"ended"` // false: it took too long, and was stopped
	Files   []fileRead `json:"files"`
	Cut     bool       `json:"cut,omitempty"` // more files were read
	// Altered has the columns with strings that are not UTF-8, which text cannot hold.
	Altered []alteredDoc `json:"altered,omitempty"`
	lostDoc
}

// fileRead has the bytes of a file that were read, as runs [from, to) that do not touch: to detect the format and open
// the table, and by the scan.
type fileRead struct {
	Name   string     `json:"name"`
	Size   int64      `json:"size"`
	Opened [][2]int64 `json:"opened"`
	Read   [][2]int64 `json:"read"`
}

// readsDoc runs a scan and returns what it read of which file.
func (s *Server) readsDoc(ctx context.Context, q query) (any, error) {
	name, err := s.target(q)
	if err != nil {
		return nil, err
	}
	spec := stoa.ScanSpec{Damaged: stoa.NullCells, Memory: 64 << 20}
	if where := strings.TrimSpace(q.text("where")); where != "" {
		if spec.Filter, err = pred.Parse(where); err != nil {
			return nil, err
		}
	}
	if columns := strings.TrimSpace(q.text("columns")); columns != "" {
		for c := range strings.SplitSeq(columns, ",") {
			spec.Columns = append(spec.Columns, strings.TrimSpace(c))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readsTime)
	defer cancel()
	counter := store.NewCounter(s.tree)
	o := s.opening(name)
	o.Tree = counter
	t, err := stoa.Open(ctx, name.name, o)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	lost := &losses{}
	if lost.at, err = t.Positions(ctx); err != nil {
		lost.at = nil // the scan says why
	}
	spec.Lost = lost.add
	opened := len(counter.Reads())
	r := &readsResult{Files: []fileRead{}, Ended: true}
	begin := time.Now()
	for b, err := range t.Scan(ctx, spec) {
		if errors.Is(err, context.DeadlineExceeded) {
			r.Ended = false
			break
		}
		if err != nil {
			return nil, err
		}
		r.Rows += b.NumRows()
		for k, c := range b.Columns() {
			r.Altered = alter(r.Altered, b.ColumnName(k), fit.Invalid(c), c.Len())
		}
	}
	r.Seconds, r.lostDoc = time.Since(begin).Seconds(), lost.doc(t)
	s.gather(context.WithoutCancel(ctx), r, counter.Reads(), opened)
	return r, nil
}

// gather sorts reads, the first opened of which opened the table, into files: those of which the scan read most first.
func (s *Server) gather(ctx context.Context, r *readsResult, reads []store.Read, opened int) {
	type both struct{ opened, read [][2]int64 }
	files := map[string]*both{}
	for i, x := range reads {
		f := files[x.Name]
		if f == nil {
			f = &both{}
			files[x.Name] = f
		}
		run := [2]int64{x.Off, x.Off + int64(x.Got)}
		if i < opened {
			f.opened = append(f.opened, run)
		} else {
			f.read = append(f.read, run)
		}
	}
	for name, f := range files {
		info, err := s.tree.Stat(ctx, name)
		if err != nil {
			continue
		}
		r.Files = append(r.Files, fileRead{name, info.Size, joined(f.opened), joined(f.read)})
	}
	sum := func(runs [][2]int64) (n int64) {
		for _, x := range runs {
			n += x[1] - x[0]
		}
		return n
	}
	sorted.By(r.Files, func(a, b fileRead) int {
		return cmp.Or(cmp.Compare(sum(b.Read), sum(a.Read)), cmp.Compare(a.Name, b.Name))
	})
	if r.Cut = len(r.Files) > maxVisited; r.Cut {
		r.Files = r.Files[:maxVisited]
	}
}

// joined sorts runs, and joins those that touch; at most maxReads are returned.
func joined(runs [][2]int64) [][2]int64 {
	sorted.By(runs, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	out := [][2]int64{}
	for _, x := range runs {
		if n := len(out); n > 0 && x[0] <= out[n-1][1] {
			out[n-1][1] = max(out[n-1][1], x[1])
		} else if x[1] > x[0] && n < maxReads {
			out = append(out, x)
		}
	}
	return out
}
