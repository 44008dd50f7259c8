package parquet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strconv"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/vec"
)

// damagedFile is a file whose bytes are changed, with its original content.
type damagedFile struct {
	name   string
	intact []byte
	opts   map[string]string
	starts []int64    // first row of each row group
	cells  [][]string // by top-level field: its rows as text
	places []damagedPage
}

// damagedPage is a page, or a range outside pages (field -1).
type damagedPage struct {
	at    fault.Span
	body  fault.Span // the part with a checksum or authentication; empty: none
	field int
	rows  vec.Range // of the file
}

// TestFlipsAndCuts changes bits and bytes of files of all encodings, codecs and page versions, and truncates them. A
// change of bytes with a checksum is an error, a change of a page affects only its own rows, apart from losses; nothing
// panics, and no length in a file leads to excessive allocations. STOA_FLIPS is the number of changes, STOA_SEED their
// seed; make flips makes a million.
func TestFlipsAndCuts(t *testing.T) {
	number := func(name string, usual int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return usual
	}
	flips, seed := number("STOA_FLIPS", 2000), number("STOA_SEED", 1)
	names, err := filepath.Glob("testdata/*.parquet")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("testdata/encrypted/*.parquet")
	if err != nil || len(names) < 20 || len(more) == 0 {
		t.Fatal(len(names), len(more), err)
	}
	var files []*damagedFile
	for _, name := range append(append(names, more...), flipFiles(t, nil)...) {
		files = append(files, newDamagedFile(t, name))
	}
	r := rand.New(rand.NewPCG(uint64(seed), 19))
	var n struct{ errors, same, inside, elsewhere int }
	for i := range flips {
		h := files[i%len(files)]
		if i > 0 && i%50_000 == 0 {
			t.Log(i, "changes")
		}
		switch got := h.flip(t, r); {
		case t.Failed():
			t.Fatalf("change %d of seed %d", i, seed)
		case got == "error":
			n.errors++
		case got == "same":
			n.same++
		case got == "inside":
			n.inside++
		default:
			n.elsewhere++
		}
	}
	t.Logf("COUNT %d changes of %d files: %d errors, %d without effect, %d wrong values in the changed page, "+
		"%d in footers and indexes or cuts", flips, len(files), n.errors, n.same, n.inside, n.elsewhere)
	if n.errors == 0 || n.same == 0 || n.inside == 0 || n.elsewhere == 0 {
		t.Errorf("got outcomes %+v, want some of each", n)
	}
}

func newDamagedFile(t *testing.T, name string) *damagedFile {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	h := &damagedFile{name: name, intact: b}
	if filepath.Base(filepath.Dir(name)) == "encrypted" {
		h.opts = map[string]string{"key-file": name[:len(name)-len("parquet")] + "keys"}
	}
	r, err := openReader(t.Context(), targetOf(b), format.OpenOptions{Opts: h.opts})
	if err != nil {
		t.Fatal(name, err)
	}
	defer r.Close()
	rows := int64(0)
	for g, rg := range r.Footer.RowGroups {
		h.starts = append(h.starts, rows)
		for f, leaves := range r.FieldLeaves {
			for _, leaf := range leaves {
				h.pagesOf(t, r, g, f, leaf)
			}
		}
		rows += rg.NumRows
	}
	for f := range r.FieldLeaves {
		cells, lost, _, err := h.read(r, f, scan.Fail)
		if err != nil || len(lost) > 0 {
			t.Fatal(name, err)
		}
		h.cells = append(h.cells, cells)
	}
	return h
}

// pagesOf records the pages of a column chunk.
func (h *damagedFile) pagesOf(t *testing.T, r *reader, g, f, leaf int) {
	t.Helper()
	all := vec.Range{From: h.starts[g], To: h.starts[g] + r.Footer.RowGroups[g].NumRows}
	row := all.From
	c, err := r.WalkChunk(t.Context(), g, leaf)
	if err != nil {
		t.Fatal(h.name, err)
	}
	var data []vec.Range
	for {
		p, err := c.Next(t.Context())
		if err != nil {
			break
		}
		at := all
		if r.Leaves[leaf].MaxRep == 0 {
			at = vec.Range{From: row, To: row + p.Rows}
			row += p.Rows
		}
		data = append(data, at)
	}
	for p, err := range r.Pages(t.Context(), g, leaf) {
		if err != nil {
			t.Fatal(h.name, err)
		}
		x := damagedPage{at: p.Whole(), field: f, rows: all}
		s := r.Footer.RowGroups[g].Columns[leaf].Cipher
		if p.HasCRC || s != nil && !s.CTR {
			x.body = p.Body
		}
		if p.IsData() && len(data) > 0 {
			x.rows, data = data[0], data[1:]
		}
		h.places = append(h.places, x)
	}
}

// read returns the rows of a field as text, and the rows reported as lost; gone are those lost rows that are not
// returned under any policy, because no column has them and only the row group declares them.
func (h *damagedFile) read(r *reader, f int, policy scan.Damaged) (cells []string, lost, gone vec.Ranges, err error) {
	src := scan.Source{Reader: r, Objects: scan.NewObjects(r.Target.Tree), Dicts: scan.NewDicts(),
		Limits: format.Limits{}.WithDefaults()}
	defer src.Dicts.Close()
	spec := scan.Spec{Columns: []string{r.Shown.Field(f).Name}, Damaged: policy, Batch: 64}
	spec.Lost = func(l region.Loss) {
		from := int64(0)
		if l.Group < len(h.starts) {
			from = h.starts[l.Group]
		}
		rows := vec.Range{From: from + l.Rows[0], To: from + l.Rows[1]}
		if lost = lost.Add(rows); policy == scan.SkipRows || l.Column == "" {
			gone = gone.Add(rows)
		}
	}
	for b, e := range scan.Run(context.Background(), src, spec, nil) {
		if e != nil {
			return cells, lost, gone, e
		}
		for i := range int(b.NumRows()) {
			cell := "(null)"
			if c := b.Column(0); !c.IsNull(i) {
				cell = c.ValueStr(i)
			}
			cells = append(cells, cell)
		}
	}
	return cells, lost, gone, nil
}

// maxAllocated is the maximum number of bytes that reading a damaged file of a few KB may allocate in total. Brotli may
// take 64 MiB a page.
const maxAllocated = 256 << 20

// flip changes the file and returns the outcome.
func (h *damagedFile) flip(t *testing.T, r *rand.Rand) string {
	b := bytes.Clone(h.intact)
	how := ""
	p := damagedPage{field: -1}
	if len(h.places) > 0 && r.IntN(8) > 0 {
		p = h.places[r.IntN(len(h.places))]
		how = change(r, b, p.at)
	} else if r.IntN(2) == 0 {
		b = b[:r.IntN(len(b))]
		how = fmt.Sprintf("cut to %d", len(b))
	} else {
		n := min(len(b), 16<<10) // the last bytes
		how = change(r, b, fault.Span{Off: int64(len(b) - n), Len: int64(n)})
	}
	before := allocated()
	got := h.outcome(t, r, b, p, how)
	if n := allocated() - before; n > maxAllocated {
		t.Errorf("%s, %s: %d bytes allocated, want at most %d", h.name, how, n, maxAllocated)
	}
	return got
}

func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// change changes some bytes in at, and returns a description.
func change(r *rand.Rand, b []byte, at fault.Span) string {
	k := at.Off + r.Int64N(at.Len)
	switch r.IntN(6) {
	case 0:
		n := min(1+r.Int64N(8), at.End()-k)
		for i := range n {
			b[k+i] = byte(r.Uint32())
		}
		return fmt.Sprintf("%d bytes at %d at random", n, k)
	case 1:
		b[k] = byte(r.Uint32())
		return fmt.Sprintf("byte %d", k)
	default:
		bit := r.IntN(8)
		b[k] ^= 1 << bit
		return fmt.Sprintf("bit %d of byte %d", bit, k)
	}
}

// outcome reads the changed file and compares it with the original content.
func (h *damagedFile) outcome(t *testing.T, r *rand.Rand, b []byte, p damagedPage, how string) string {
	t.Helper()
	reader, err := openReader(t.Context(), targetOf(b), format.OpenOptions{Opts: h.opts})
	if err != nil {
		h.noBug(t, how, err)
		return "elsewhere"
	}
	defer reader.Close()
	if p.field < 0 { // bytes without a known checksum
		for f := range reader.FieldLeaves {
			_, _, _, err := h.read(reader, f, scan.SkipRows)
			h.noBug(t, how, err)
		}
		return "elsewhere"
	}
	policy := []scan.Damaged{scan.Fail, scan.SkipRows, scan.NullCells}[r.IntN(3)]
	cells, lost, gone, err := h.read(reader, p.field, policy)
	h.noBug(t, how, err)
	what := fmt.Sprintf("%s, %s, in page %v of field %d, rows %v, policy %v", h.name, how, p.at, p.field, p.rows,
		policy)
	differs := false
	row := int64(0)
	for _, c := range cells {
		for holds(gone, row) {
			row++
		}
		if row >= int64(len(h.cells[p.field])) {
			t.Errorf("%s: got more than %d rows", what, row)
			break
		}
		if want := h.cells[p.field][row]; c != want && !(c == "(null)" && holds(lost, row)) {
			if differs = true; row < p.rows.From || row >= p.rows.To {
				t.Errorf("%s: row %d: got %s, want %s", what, row, c, want)
				break
			}
		}
		row++
	}
	for holds(gone, row) {
		row++
	}
	if err == nil && !t.Failed() && row != int64(len(h.cells[p.field])) {
		t.Errorf("%s: got %d rows, %d lost, want %d in all", what, len(cells), lost.Len(), len(h.cells[p.field]))
	}
	if differs && p.body.Len > 0 && bytes.Equal(b[p.at.Off:p.body.Off], h.intact[p.at.Off:p.body.Off]) {
		t.Errorf("%s: got wrong values in spite of a checksum", what)
	}
	switch {
	case differs:
		return "inside"
	case err != nil || len(lost) > 0:
		return "error"
	}
	return "same"
}

func holds(rs vec.Ranges, k int64) bool {
	for _, r := range rs {
		if k >= r.From && k < r.To {
			return true
		}
	}
	return false
}

func (h *damagedFile) noBug(t *testing.T, how string, err error) {
	t.Helper()
	if errors.Is(err, fault.Bug) {
		t.Errorf("%s, %s: %v", h.name, how, err)
	}
}
