package laws_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// account recovers a place and returns its account, and the number of losses and errors reported.
func (h *held) account(damaged stoa.Damaged) (a stoa.Accounts, reported int, err error) {
	o := h.opts
	o.Recover = true
	tab, err := stoa.Open(h.t.Context(), h.uri, o)
	if err != nil {
		return a, 0, err
	}
	defer tab.Close()
	var losses []region.Loss
	spec := stoa.ScanSpec{Damaged: damaged, Lost: func(l region.Loss) { losses = append(losses, l) }}
	var out int64
	for b, err := range tab.Scan(h.t.Context(), spec) {
		if err != nil {
			return a, 0, err
		}
		if out += b.NumRows(); out > 1<<17 {
			return a, 0, errors.New("more rows than this test reads")
		}
	}
	reported = len(losses)
	for _, f := range tab.Findings() {
		if f.Severity == region.Error {
			reported++
		}
	}
	a, err = tab.Account(h.t.Context(), damaged, out, losses)
	return a, reported, err
}

// TestRecoveryAddsUp: for a table of any format with any damage, and under both policies, the rows that recovery
// returns and those that it reports as lost add up to the declared number. From an undamaged table all rows are
// returned, and their number is known.
func TestRecoveryAddsUp(t *testing.T) {
	rounds := 10
	if testing.Short() {
		rounds = 2
	}
	known, lost := map[string]int{}, 0
	for _, p := range append(heldPlaces(t), keptPlaces(t, "")...) {
		for _, policy := range []stoa.Damaged{stoa.SkipRows, stoa.NullCells} {
			a, reported, err := p.held(t, p.files).account(policy)
			if reported > 0 || err != nil { // the stored file is already damaged
				continue
			}
			if f := a.Finding(); f != nil || a.Lost != 0 || a.Declared >= 0 && a.Declared != a.Out {
				t.Errorf("%s as it is: %+v, %v", p.name, a, f)
			}
		}
		format := formatOf(t, &p)
		names := slices.Sorted(maps.Keys(p.files))
		for seed := range uint64(rounds) {
			r := rand.New(rand.NewPCG(seed, 17))
			name := names[r.IntN(len(names))]
			files := maps.Clone(p.files)
			files[name] = damagedCopy(r, p.files[name])
			for _, policy := range []stoa.Damaged{stoa.SkipRows, stoa.NullCells} {
				a, reported, err := p.held(t, files).account(policy)
				if err != nil { // nothing was recovered
					continue
				}
				if f := a.Finding(); f != nil {
					t.Errorf("%s, seed %d, %v, %d reported: %s (%+v)", p.name, seed, policy, reported, f.Message, a)
				}
				if a.Declared >= 0 {
					known[format]++
				}
				if a.Lost > 0 {
					lost++
				}
			}
		}
	}
	for _, f := range []string{"arrow", "carbon", "cfile", "parquet", "redfile", "trevni"} {
		if known[f] == 0 {
			t.Errorf("%s: the declared rows are known for no damaged place", f)
		}
	}
	if lost < 20 && !testing.Short() {
		t.Errorf("only %d cases lost rows, expected 20 or more", lost)
	}
}

// TestCutIsCounted: if a file of a table is truncated anywhere, all rows are returned or reported as lost, or their
// number is reported as unknown. This holds for the account of recovery, and for other verbs on a table that had to be
// recovered.
func TestCutIsCounted(t *testing.T) {
	short := map[string]int{}
	for _, p := range append(heldPlaces(t), keptPlaces(t, "")...) {
		whole, reported, err := p.held(t, p.files).account(stoa.SkipRows)
		if err != nil || reported > 0 || whole.Declared < 0 {
			continue // a text or a stream does not declare its number of rows
		}
		for i, name := range slices.Sorted(maps.Keys(p.files)) {
			for k := range 5 {
				files := maps.Clone(p.files)
				files[name] = files[name][:len(files[name])*(2*k+1+i%2)/11]
				h := p.held(t, files)
				a, _, err := h.account(stoa.SkipRows)
				if err != nil || a.Out+a.Lost >= whole.Out {
					continue
				}
				short[formatOf(t, &p)]++
				if a.Declared < 0 && a.Undeclared() == nil || a.Declared >= 0 && a.Declared != whole.Declared {
					t.Errorf("%s, %s cut to %d bytes: %d of %d rows, without a report: %+v", p.name, name,
						len(files[name]), a.Out+a.Lost, whole.Out, a)
				}
				o := h.opts
				o.Recover = true
				tab, err := stoa.Open(t.Context(), h.uri, o)
				if err != nil {
					t.Fatal(err)
				}
				if f, err := tab.Undeclared(t.Context()); (f == nil) != (a.Undeclared() == nil) || err != nil {
					t.Errorf("%s, %s cut: the account says %v, the table %v, %v", p.name, name, a.Undeclared(), f, err)
				}
				tab.Close()
			}
		}
	}
	if t.Log(short); len(short) < 3 || short["redfile"] < 2 {
		t.Error("cuts lost rows of fewer than 3 formats, or of fewer than 2 RedFiles")
	}
}

// TestMissingColumnAddsUp: table.json declares the rows of a directory of CFiles in which a column is missing.
func TestMissingColumnAddsUp(t *testing.T) {
	tried := 0
	for _, p := range heldPlaces(t) {
		if p.files["t.cfile/table.json"] == nil {
			continue
		}
		for name := range p.files {
			if name == "t.cfile/table.json" {
				continue
			}
			tried++
			files := maps.Clone(p.files)
			delete(files, name)
			for _, policy := range []stoa.Damaged{stoa.SkipRows, stoa.NullCells} {
				a, reported, err := p.held(t, files).account(policy)
				if err != nil || reported == 0 || a.Declared != 60 || a.Why != nil || a.Finding() != nil {
					t.Errorf("%s without %s, %v: %+v, %d reported, %v", p.name, name, policy, a, reported, err)
				}
			}
		}
	}
	if tried < 5 {
		t.Errorf("only %d columns were taken away", tried)
	}
}

func formatOf(t *testing.T, p *place) string {
	tab, err := stoa.Open(t.Context(), p.uri(), p.held(t, p.files).opts)
	if err != nil {
		return ""
	}
	defer tab.Close()
	return tab.Sources()[0].Format
}

// withoutRowGroups is a format whose recovery finds no row groups and does not report that.
func withoutRowGroups(f format.Format) format.Format {
	right := f.Recover
	f.Recover = func(ctx context.Context, t format.Target, o format.OpenOptions) (format.Reader,
		[]region.Finding, error) {
		r, found, err := right(ctx, t, o)
		return noRowGroups{r}, found, err
	}
	return f
}

type noRowGroups struct{ format.Reader }

func (noRowGroups) RowGroups(context.Context, format.Part, format.Query) ([]format.RowGroup, error) {
	return nil, nil
}

// TestRecoveryThatLosesIsNoticed: in every format that declares the number of rows, rows that recovery neither finds
// nor reports are an error that names the table and the three numbers, and the output has the rows that were found.
func TestRecoveryThatLosesIsNoticed(t *testing.T) {
	var broken []format.Format
	for _, f := range everyFormat {
		if f.Recover != nil {
			f = withoutRowGroups(f)
		}
		broken = append(broken, f)
	}
	noticed := map[string]bool{}
	for _, p := range heldPlaces(t) {
		o := p.held(t, p.files).opts
		o.Formats, o.Recover = broken, true
		tab, err := stoa.Open(t.Context(), p.uri(), o)
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		name, out := tab.Sources()[0].Format, store.NewMemory(nil)
		s, err := stoa.Convert(t.Context(), tab, stoa.ScanSpec{Damaged: stoa.SkipRows}, "out.jsonl",
			stoa.CreateOptions{Sink: out.Sink("out.jsonl")})
		tab.Close()
		for _, f := range s.Altered {
			if f.Code == "output.rows.sum" && f.Severity == region.Error && strings.Contains(f.Message,
				" declare 60 rows, 0 came out, and 0 were reported as lost") &&
				strings.HasPrefix(f.Part, p.at) {
				noticed[name] = true
			} else {
				t.Errorf("%s: %+v", p.name, f)
			}
		}
		if err != nil || s.Rows != 0 || len(out.Names()) != 1 {
			t.Errorf("%s: %v, %d rows, %v", p.name, err, s.Rows, out.Names())
		}
	}
	want := []string{"arrow", "carbon", "cfile", "parquet", "redfile", "trevni"}
	if got := slices.Sorted(maps.Keys(noticed)); !slices.Equal(got, want) {
		t.Errorf("noticed for %v, want %v (a text does not declare its rows)", got, want)
	}
}
