package soak

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/region"
)

// harm is the damage done to the files of a copy. Offsets are those of the original files.
type harm struct {
	what    string
	spans   []span
	foreign bool // a file was replaced by another table's, which may be impossible to detect
}

type span struct {
	file     string // of the copy
	from, to int64
	gone     bool // the bytes were removed, not overwritten
}

// touched is the set of cells that harm may cost: for each row of the table, by its id, the columns.
type touched struct {
	columns int
	cells   map[int64][]bool
}

func (t *touched) add(rows []int64, column int) {
	for _, r := range rows {
		if t.cells[r] == nil {
			t.cells[r] = make([]bool, t.columns)
		}
		for c := range t.columns {
			t.cells[r][c] = t.cells[r][c] || column < 0 || column == c
		}
	}
}

func (t *touched) cell(row int64, column int) bool {
	return t.cells[row] != nil && t.cells[row][column]
}

func (t *touched) any(row int64) bool { return slices.Contains(t.cells[row], true) }

func (t *touched) all(row int64) bool {
	return t.cells[row] != nil && !slices.Contains(t.cells[row], false)
}

// damage harms a copy, and compares the rows and findings of reading and recovery with the table.
func (s *soak) damage(w *writer, file string, opts, read map[string]string) {
	l, err := s.layoutOf(w, file, opts, read)
	if err != nil {
		s.fail(w, opts, "finding where the cells are: %v", err)
		return
	}
	copied := filepath.Join(s.dir, "damaged"+w.ext)
	defer os.RemoveAll(copied)
	files := s.copyTree(file, copied)
	h := s.harm(w, files, copied, opts)
	if h.what == "" {
		return
	}
	s.ops["damage"]++
	s.ops["damage: "+strings.SplitN(h.what, " ", 2)[0]]++
	found, verr := s.findings(w, copied, read, format.Deep)
	reported := verr != nil ||
		slices.ContainsFunc(found, func(f region.Finding) bool { return f.Severity > region.Note })
	got, err := s.rows(copied, s.opening(w, copied, read), stoa.Fail)
	summed := w.summed != nil && w.summed(opts) && !h.foreign
	if errors.Is(err, fault.Bug) || errors.Is(verr, fault.Bug) {
		s.fail(w, opts, "%s: %v, %v", h.what, err, verr)
	}
	ours := errors.Is(err, errDuplicate) || errors.Is(err, errIDs) // the reader reports no error
	same := err == nil && s.wrong(got) == "" && len(got) == len(s.lines)
	switch {
	case err != nil && !ours:
		s.ops["damage: reported when read"]++
	case same:
		s.ops["damage: rows are the same"]++
	case reported:
		s.ops["damage: reported by verify"]++
	default:
		s.ops["damage: not noticed, no checksum: "+w.name]++
	}
	if (err == nil || ours) && summed && !same {
		s.fail(w, opts, "%s: got %d rows of %d and no error: %s", h.what, len(got), len(s.lines), s.wrong(got))
	}
	if err != nil && !reported && !ours {
		s.fail(w, opts, "%s: verify finds nothing, but reading fails: %v", h.what, err)
	}
	t := s.touches(w, l, h, strings.TrimSuffix(copied, "/"), file, opts)
	for _, p := range []stoa.Damaged{stoa.SkipRows, stoa.NullCells} {
		s.recover(w, copied, opts, read, h, t, summed, p)
	}
}

// opening returns the options to open a file, with its format, because its first bytes may be damaged; the format of a
// directory is detected by its contents.
func (s *soak) opening(w *writer, name string, read map[string]string) stoa.OpenOptions {
	o := stoa.OpenOptions{Formats: formats, From: w.name, Opts: read}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		o.From = ""
	}
	return o
}

// harm damages one of the files, or exchanges two, and describes the damage; what is "" if nothing was done.
func (s *soak) harm(w *writer, files []string, root string, opts map[string]string) harm {
	victim := files[s.r.IntN(len(files))]
	b, err := os.ReadFile(victim)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(b) == 0 {
		return harm{}
	}
	size := int64(len(b))
	at := s.r.IntN(len(b))
	base := filepath.Base(victim)
	whole := func(f string) span { return span{file: f, to: math.MaxInt64, gone: true} }
	if len(files) > 1 && s.r.IntN(3) == 0 {
		other := files[s.r.IntN(len(files))]
		switch k := s.r.IntN(3); {
		case k == 0:
			if err := os.Remove(victim); err != nil {
				s.t.Fatal(err)
			}
			return harm{what: "gone: " + base, spans: []span{whole(victim)}}
		case k == 1 && other != victim:
			s.exchange(victim, other)
			return harm{what: fmt.Sprintf("exchanged %s and %s", base, filepath.Base(other)),
				spans: []span{whole(victim), whole(other)}}
		case k == 2 && w != carbonTable:
			if b := s.foreign(w, strings.TrimPrefix(victim, root), opts); b != nil {
				s.put(victim, b)
				return harm{what: "foreign " + base, spans: []span{whole(victim)}, foreign: true}
			}
		}
	}
	n := min(1+s.r.IntN(100), len(b)-at)
	h := harm{spans: []span{{file: victim, from: int64(at), to: int64(at + n)}}}
	switch s.r.IntN(12) {
	case 0, 1:
		h.what = fmt.Sprintf("cut %s at %d of %d", base, at, size)
		h.spans[0].to, h.spans[0].gone = math.MaxInt64, true
		b = b[:at]
	case 2:
		h.what = fmt.Sprintf("zeroed %s at %d+%d of %d", base, at, n, size)
		clear(b[at : at+n])
	case 3:
		h.what = fmt.Sprintf("overwritten %s at %d+%d of %d", base, at, n, size)
		for i := range n {
			b[at+i] = byte(s.r.Uint32())
		}
	case 4:
		h.what = fmt.Sprintf("longer %s by %d after %d", base, n, size)
		h.spans[0].from, h.spans[0].to = size, size+int64(n)
		for range n {
			b = append(b, byte(s.r.Uint32()))
		}
	default:
		h.what = fmt.Sprintf("bit of byte %d of %d of %s", at, size, base)
		h.spans[0].to = int64(at) + 1
		b[at] ^= 1 << s.r.IntN(8)
	}
	s.put(victim, b)
	return h
}

func (s *soak) put(name string, b []byte) {
	if err := os.WriteFile(name, b, 0o666); err != nil {
		s.t.Fatal(err)
	}
}

func (s *soak) exchange(a, b string) {
	x, err := os.ReadFile(a)
	y, err2 := os.ReadFile(b)
	if err != nil || err2 != nil {
		s.t.Fatal(err, err2)
	}
	s.put(a, y)
	s.put(b, x)
}

// foreign returns the file of that name of another table with the same columns and options; nil if it has none.
func (s *soak) foreign(w *writer, name string, opts map[string]string) []byte {
	lines, batches := s.lines, s.batches
	defer func() { s.lines, s.batches = lines, batches }()
	n := len(lines)
	if s.r.IntN(2) == 0 {
		n = 1 + s.r.IntN(600)
	}
	s.fill(n, 100_000)
	out := filepath.Join(s.dir, "stranger"+w.ext)
	defer os.RemoveAll(out)
	if err := s.create(out, stoa.CreateOptions{Formats: formats, To: w.name, Opts: opts}); err != nil {
		return nil
	}
	b, err := os.ReadFile(out + name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	return b
}

// touches returns the cells that h may cost; nil: unknown.
func (s *soak) touches(w *writer, l *layout, h harm, copied, file string, opts map[string]string) *touched {
	if l == nil {
		return nil
	}
	t := &touched{columns: s.schema.NumFields(), cells: map[int64][]bool{}}
	if w.ext == ".csv" || w.ext == ".tsv" {
		return t.records(w, file, copied, opts)
	}
	for _, sp := range h.spans {
		sp.file = file + strings.TrimPrefix(sp.file, copied)
		covered := false
		for _, p := range l.places {
			if p.file == sp.file && p.from < sp.to && sp.from < p.to {
				t.add(p.rows, p.column)
				covered = covered || p.from <= sp.from && sp.to <= p.to
				// after a damaged header no page of the chunk is found
				if w.name == "redfile" && opts["index"] == "false" {
					l.after(p, t)
				}
			}
		}
		if !covered && !s.around(w, l, sp, t, file, opts) {
			return nil
		}
	}
	return t
}

// recover: with checksums, every recovered row is one of the table's; and all untouched cells are recovered.
func (s *soak) recover(w *writer, file string, opts, read map[string]string, h harm, t *touched, summed bool,
	p stoa.Damaged) {
	o := s.opening(w, file, read)
	o.Recover = true
	got, reported, err := s.cells(file, o, p)
	s.ops["recover"]++
	s.ops["rows recovered"] += len(got)
	if errors.Is(err, fault.Bug) {
		s.fail(w, opts, "%s: recover: %v", h.what, err)
		return
	}
	if s.flattened(w, h) && reported { // the file has other columns
		s.ops["recover: structs came as columns"]++
		return
	}
	if summed && err == nil {
		if bad := s.wrongCell(got, reported); bad != "" {
			s.fail(w, opts, "%s: recovered %s", h.what, bad)
		}
	}
	if t == nil {
		return
	}
	if bad := s.missing(got, t, p); bad != "" {
		s.fail(w, opts, "%s: policy %d recovered %d rows of %d (%v), reported %v; of the untouched cells %s",
			h.what,
			p, len(got), len(s.lines), err, reported, bad)
		return
	}
	s.ops["recover: all that is whole came back"]++
}

// flattened reports whether h may have cost a set of CFiles the definition of its structs, whose leaves then become
// separate columns.
func (s *soak) flattened(w *writer, h harm) bool {
	structs := slices.ContainsFunc(s.schema.Fields(), func(f arrow.Field) bool { return f.Type.ID() == arrow.STRUCT })
	return w.name == "cfile" && structs && slices.ContainsFunc(h.spans, func(sp span) bool {
		return filepath.Base(sp.file) == "table.json"
	})
}

// wrongCell returns the first cell that is not the table's, or that is null without a report.
func (s *soak) wrongCell(got [][]string, reported bool) string {
	seen := map[string]bool{}
	for i, row := range got {
		id := row[0]
		if len(got) == len(s.lines) {
			id = s.keys[i]
		}
		if id == "null" {
			continue
		}
		want, ok := s.rowCells[id]
		if !ok || seen[id] {
			return fmt.Sprintf("row %s, which does not exist, or came before", id)
		}
		seen[id] = true
		for c := range row {
			if row[c] != want[c] && row[c] != "null" && !lessOf(row[c], want[c]) {
				return fmt.Sprintf("row %s: got %s, want %s", id, row[c], want[c])
			}
			if row[c] != want[c] && !reported {
				return fmt.Sprintf("row %s, without a report: got %s, want %s", id, row[c], want[c])
			}
		}
	}
	if len(got) < len(s.lines) && !reported {
		return fmt.Sprintf("%d rows of %d, without a report", len(got), len(s.lines))
	}
	return ""
}

// lessOf reports whether got is the struct want with nulls in place of some of its fields: each field can be lost
// separately.
func lessOf(got, want string) bool {
	g, ok := strings.CutPrefix(got, "{")
	w, is := strings.CutPrefix(want, "{")
	gx, gy, _ := strings.Cut(g, " ")
	wx, wy, _ := strings.Cut(w, " ")
	return ok && is && (gx == wx || gx == "null") && (gy == wy || gy == "null}")
}

// missing returns the first untouched cell that is not recovered. Rows are matched by their ids, or, if all rows are
// recovered, by position.
func (s *soak) missing(got [][]string, t *touched, p stoa.Damaged) string {
	byID := map[string][][]string{} // a damaged row may have the id of another row
	for _, row := range got {
		byID[row[0]] = append(byID[row[0]], row)
	}
	for i, key := range s.keys {
		id := s.ids[i]
		if t.all(id) || p == stoa.SkipRows && t.any(id) {
			continue
		}
		rows := byID[key]
		if t.cell(id, 0) {
			if len(got) != len(s.keys) {
				continue
			}
			rows = got[i : i+1]
		}
		bad := "is missing"
		if !slices.ContainsFunc(rows, func(row []string) bool {
			for c, want := range s.rowCells[key] {
				if !t.cell(id, c) && row[c] != want {
					bad = fmt.Sprintf("column %d: got %s, want %s", c, row[c], want)
					return false
				}
			}
			return true
		}) {
			return fmt.Sprintf("row %s %s", key, bad)
		}
	}
	return ""
}

// cells reads a file: the cells of each row in the order of the table's columns, "null" for a missing column. reported:
// there were losses, or findings above notes.
func (s *soak) cells(file string, o stoa.OpenOptions, p stoa.Damaged) (out [][]string, reported bool, err error) {
	t, err := stoa.Open(s.ctx, file, o)
	if err != nil {
		return nil, true, err
	}
	defer t.Close()
	for b, err := range t.Scan(s.ctx, stoa.ScanSpec{Damaged: p, Lost: func(region.Loss) { reported = true }}) {
		if err != nil {
			return out, true, err
		}
		out = append(out, s.batchCells(b)...)
	}
	reported = reported ||
		slices.ContainsFunc(t.Findings(), func(f region.Finding) bool { return f.Severity > region.Note })
	return out, reported, nil
}

func (s *soak) batchCells(b arrow.RecordBatch) [][]string {
	cols := make([]arrow.Array, s.schema.NumFields())
	for i, f := range s.schema.Fields() {
		if k := b.Schema().FieldIndices(f.Name); len(k) == 1 {
			cols[i] = b.Column(k[0])
		}
	}
	out := make([][]string, b.NumRows())
	for i := range out {
		for _, c := range cols {
			cell := "null"
			if c != nil {
				cell = formattest.Cell(c, i)
			}
			out[i] = append(out[i], cell)
		}
	}
	return out
}

// copyTree copies a file or a directory and returns the files of the copy.
func (s *soak) copyTree(from, to string) (files []string) {
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		out := to + strings.TrimPrefix(p, from)
		if d.IsDir() {
			return os.MkdirAll(out, 0o777)
		}
		b, err := os.ReadFile(p)
		if err == nil {
			err = os.WriteFile(out, bytes.Clone(b), 0o666)
		}
		files = append(files, out)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return files
}
