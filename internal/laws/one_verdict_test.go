package laws_test

import (
	"cmp"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/region"
	"stoa/store"
)

var arrowMemory = memory.DefaultAllocator

// damagedCopy returns b with one kind of damage that occurs in practice: flipped bits, or bytes overwritten, zeroed,
// cut off, inserted or repeated.
func damagedCopy(r *rand.Rand, b []byte) []byte {
	out := slices.Clone(b)
	if len(b) == 0 {
		return out
	}
	at, n := r.IntN(len(b)), 1+r.IntN(min(len(b), 100))
	end := min(at+n, len(b))
	switch r.IntN(9) {
	case 0, 1, 2:
		out[at] ^= 1 << r.IntN(8)
	case 3:
		out[at] = byte(r.Uint32())
	case 4:
		clear(out[at:end])
	case 5:
		out = out[:at]
	case 6:
		put := make([]byte, n)
		for i := range put {
			put[i] = byte(r.Uint32())
		}
		out = slices.Insert(out, at, put...)
	case 7:
		out = slices.Insert(out, at, b[at:end]...)
	case 8: // a sector
		at -= at % 512
		clear(out[at:min(at+512, len(b))])
	}
	return out
}

// verdict is a verb's answer about a place, in the form of an exit status.
type verdict int

const (
	fine    verdict = 0
	cannot  verdict = 1 // a limit, or an unsupported feature
	use     verdict = 2
	damaged verdict = 3
)

// verdictOf returns the command's exit status for an error.
func verdictOf(err error) verdict {
	switch {
	case err == nil:
		return fine
	case errors.Is(err, fault.Corrupt):
		return damaged
	case errors.Is(err, fault.Invalid):
		return use
	}
	return cannot
}

// held is a place, possibly damaged, for which laws are checked.
type held struct {
	t       *testing.T
	uri     string
	opts    stoa.OpenOptions
	several bool              // the place was made of several files
	why     map[string]string // reason of each verb whose verdict was not fine
}

func (h *held) said(verb string, v verdict, err any) verdict {
	if v != fine {
		h.why[verb] = strings.ReplaceAll(cmp.Or(text(err), "?"), "\n", " / ")
	}
	return v
}

func text(v any) string {
	switch v := v.(type) {
	case error:
		return v.Error()
	case region.Finding:
		return v.Code + ": " + v.Message
	}
	return ""
}

func (h *held) verify(depth format.Depth) (v verdict) {
	o := h.opts
	o.Depth = depth
	verb := "verify --" + depth.String()
	for f, err := range stoa.Verify(h.t.Context(), h.uri, o) {
		switch {
		case err != nil:
			v = max(v, h.said(verb, verdictOf(err), err))
		case f.Severity == region.Error && f.Class == fault.Unsupported:
			v = max(v, h.said(verb, cannot, f))
		case f.Severity == region.Error:
			if v != damaged {
				v = h.said(verb, damaged, f)
			}
		}
	}
	return v
}

func (h *held) list() (v verdict) {
	reported := func(findings []region.Finding) {
		for _, f := range findings {
			if f.Severity == region.Error {
				v = h.said("ls", damaged, f)
			}
		}
	}
	for e, err := range stoa.List(h.t.Context(), h.uri, h.opts) {
		if err != nil {
			v = max(v, h.said("ls", verdictOf(err), err))
		}
		reported(e.Findings)
	}
	tab, err := stoa.Open(h.t.Context(), h.uri, h.opts) // as the verb does
	switch {
	case err == nil:
		reported(tab.Findings())
		tab.Close()
	case !errors.Is(err, fault.Invalid) && !errors.Is(err, fault.Unsupported):
		v = max(v, h.said("ls", verdictOf(err), err))
	}
	return v
}

// open returns the verdict of opening, as in the verb schema.
func (h *held) open() verdict {
	tab, err := stoa.Open(h.t.Context(), h.uri, h.opts)
	if err != nil {
		return h.said("schema", verdictOf(err), err)
	}
	defer tab.Close()
	for _, f := range tab.Findings() {
		if f.Severity == region.Error {
			return h.said("schema", damaged, f)
		}
	}
	return fine
}

// read reads all rows; with salvage the rows that can be recovered.
func (h *held) read(verb string, salvage bool) (rows []string, v verdict, opened bool) {
	o := h.opts
	o.Recover = salvage
	tab, err := stoa.Open(h.t.Context(), h.uri, o)
	if err != nil {
		return nil, h.said(verb, verdictOf(err), err), false
	}
	defer tab.Close()
	spec := stoa.ScanSpec{}
	if salvage {
		spec = stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: func(l region.Loss) { v = h.said(verb, damaged, l.Err) }}
	}
	for b, err := range tab.Scan(h.t.Context(), spec) {
		if err != nil {
			v = h.said(verb, max(v, verdictOf(err)), err)
			break
		}
		// a table without columns can declare any number of rows
		if rows = append(rows, formattest.Lines(b)...); len(rows) > 1<<17 {
			break
		}
	}
	for _, f := range tab.Findings() {
		if f.Severity == region.Error && v == fine {
			v = h.said(verb, damaged, f)
		}
	}
	return rows, v, true
}

// judge compares the verbs' answers and returns the contradictions.
func (h *held) judge() (finds []string, cat verdict) {
	quick, sums, deep := h.verify(format.Quick), h.verify(format.Sums), h.verify(format.Deep)
	rows, cat, opened := h.read("cat", false)
	saved, rec, _ := h.read("recover", true)
	schema := h.open()
	ls := h.list()
	if cat == use && ls == use && h.several { // the only file with a known format is missing
		return nil, cat
	}
	find := func(is bool, what string) {
		if is {
			finds = append(finds, what)
		}
	}
	find(sums == fine && cat != fine, "verify 0, cat not")
	find(deep == fine && cat != fine, "verify --deep 0, cat not")
	find(cat == damaged && (sums != damaged || deep != damaged), "cat 3, verify not")
	find(quick == damaged && sums != damaged || sums == damaged &&
		deep != damaged, "a shallower verify 3, a deeper one not")
	find(rec == fine && cat != fine, "recover 0, cat not") // the command also compares with the result of verify
	find(rec == fine && cat == fine && !slices.Equal(rows, saved), "recover 0, other rows than cat's")
	find(sums == fine && rec != fine, "verify 0, recover not")
	find(ls == damaged && (sums != damaged || deep != damaged), "ls 3, verify not")
	find(sums == fine && ls != fine, "verify 0, ls not")
	find(cat == damaged && !opened && ls == fine &&
		quick != damaged, "cat cannot open it, ls and verify --quick do not say so")
	find(schema == damaged && (cat != damaged || quick != damaged || ls != damaged),
		"opening 3, one of cat, verify --quick and ls not")
	find(max(quick, sums, deep, cat, rec, ls) == use && cat != use, "a damaged file reported as wrong use")
	return finds, cat
}

// TestOneVerdict: for a place of any format with any damage, verify (at every depth), reading, recovery and listing
// agree. A place that verify calls intact can be read; damage that reading or listing reports is also reported by
// verify; if recovery reports nothing, the place is intact and the rows are the same. STOA_SEED and STOA_ROUNDS (cases
// per place) select other cases.
func TestOneVerdict(t *testing.T) {
	rounds, long := 6, os.Getenv("STOA_CORPUS")
	if long != "" {
		rounds = 5
	}
	if testing.Short() {
		rounds, long = 1, ""
	}
	if n, err := strconv.Atoi(os.Getenv("STOA_ROUNDS")); err == nil {
		rounds = n
	}
	first, _ := strconv.ParseUint(os.Getenv("STOA_SEED"), 10, 64)
	refused := 0
	for _, p := range append(heldPlaces(t), keptPlaces(t, long)...) {
		h := p.held(t, p.files)
		if finds, _ := h.judge(); len(finds) > 0 {
			t.Errorf("%s as it is: %v %v", p.name, finds, h.why)
		}
		if h.why["ls"] != "" { // no format is recognized any more
			continue
		}
		names := slices.Sorted(maps.Keys(p.files))
		for i := range rounds {
			if p.holds(t, names, first+uint64(i)) != fine {
				refused++
			}
		}
	}
	if refused < 100 && !testing.Short() {
		t.Errorf("only %d damaged places were refused, expected 100 or more", refused)
	}
}

func (p *place) held(t *testing.T, files map[string][]byte) *held {
	return &held{t: t, several: len(p.files) > 1, uri: p.uri(), why: map[string]string{},
		opts: stoa.OpenOptions{Tree: store.NewMemory(files), Formats: everyFormat}}
}

// holds damages one of the place's files as determined by seed, and checks the law.
func (p *place) holds(t *testing.T, names []string, seed uint64) verdict {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, uint64(len(p.files[names[0]]))))
	name := names[r.IntN(len(names))]
	files, what := maps.Clone(p.files), "harmed"
	if len(names) > 1 && r.IntN(6) == 0 {
		what = "removed"
		delete(files, name)
	} else {
		files[name] = damagedCopy(r, p.files[name])
	}
	h := p.held(t, files)
	finds, cat := h.judge()
	for _, f := range finds {
		t.Errorf("%s, seed %d (%s %s): %s", p.name, seed, path.Base(name), what, f)
	}
	if len(finds) > 0 {
		for _, verb := range slices.Sorted(maps.Keys(h.why)) {
			t.Logf("  %s: %.260s", verb, h.why[verb])
		}
	}
	return cat
}
