package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/reading"
)

// toldDoc has what verify -f json and a manifest have in common, and the losses of the latter.
type toldDoc struct {
	Findings []reading.FindingDoc
	Losses   []struct {
		Column, Reason string
		Offset, Length *int64
	}
}

// tells reports whether a manifest has a finding of verify, or a loss whose cause is the same damage.
func (m *toldDoc) tells(f reading.FindingDoc) bool {
	for _, l := range m.Losses {
		if l.Offset != nil && (l.Column == "" || l.Column == f.Column || l.Reason == f.Message) &&
			*l.Offset <= f.Offset && f.Offset+f.Length <= *l.Offset+*l.Length {
			return true
		}
	}
	return slices.ContainsFunc(m.Findings, func(g reading.FindingDoc) bool {
		return g.Offset == f.Offset && (g.Code == f.Code || g.Message == f.Message)
	})
}

// unproven writes a table as files without checksums, and as tables of such files.
func unproven(t *testing.T, dir string) (places []string) {
	t.Helper()
	var rows strings.Builder
	for i := range 300 {
		fmt.Fprintf(&rows, `{"a":%d,"b":"s%d","c":%d,"d":7}`+"\n", 1000+i*7919%211, i%13, i)
	}
	source := filepath.Join(dir, "rows.jsonl")
	if err := os.WriteFile(source, []byte(rows.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	const bare = "--opt crc=false --opt compression=none --opt page-rows=50 "
	for name, opts := range map[string]string{
		"t.parquet":    bare + "--opt row-group-rows=150",
		"t.carbondata": "",
		"t.iceberg":    bare + "--to iceberg",
		"t.delta":      bare + "--to delta",
		"t.hive":       bare + "--to parquet --partition-by d",
	} {
		file := filepath.Join(dir, name)
		args := append(append([]string{"convert", source, "-o", file}, strings.Fields(opts)...), "-f", "text")
		var b bytes.Buffer
		if st := run(t.Context(), args, strings.NewReader(""), &b, &b); st != cli.StatusFine {
			t.Fatal(b.String())
		}
		places = append(places, file)
	}
	slices.Sort(places)
	return places
}

// dataOf returns the file of a place that holds its rows.
func dataOf(t *testing.T, place string) (file string) {
	t.Helper()
	err := filepath.WalkDir(place, func(name string, e fs.DirEntry, err error) error {
		if ext := filepath.Ext(name); err == nil && !e.IsDir() && (name == place || ext == ".parquet") {
			if file != "" {
				t.Fatalf("%s and %s", file, name)
			}
			file = name
		}
		return err
	})
	if err != nil || file == "" {
		t.Fatal(place, err)
	}
	return file
}

// harmed is a file or table with random damage, and the verbs that read it.
type harmed struct {
	t              *testing.T
	dir, at, place string
}

func (h *harmed) verb(args ...string) (st int, out []byte, errs string) {
	var o, e bytes.Buffer
	st = run(h.t.Context(), append(args, h.place), strings.NewReader(""), &o, &e)
	return st, o.Bytes(), e.String()
}

// recovered checks that the manifest of recover has everything that verify knows, and reports whether it has both
// losses and findings.
func (h *harmed) recovered(known []byte) (both bool) {
	var all, told toldDoc
	if err := json.Unmarshal(known, &all); err != nil {
		h.t.Fatal(err)
	}
	manifest := filepath.Join(h.t.TempDir(), "lost.json")
	st, _, errs := h.verb("recover", "--force", "-o", filepath.Join(h.dir, "o.jsonl"), "--manifest", manifest)
	if st != cli.StatusDamage {
		if st == cli.StatusFine {
			h.t.Errorf("%s: verify has status 3, recover 0: %s", h.at, errs)
		}
		return false
	}
	b, err := os.ReadFile(manifest)
	if err == nil {
		err = json.Unmarshal(b, &told)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range all.Findings {
		if f.Severity == "error" && !told.tells(f) {
			h.t.Errorf("%s: verify finds %s at %d (%s), recover does not", h.at, f.Code, f.Offset, f.Message)
		}
	}
	return len(told.Losses) > 0 && len(told.Findings) > 0
}

// converted checks that convert reports what verify knows, once.
func (h *harmed) converted() {
	st, _, errs := h.verb("convert", "--force", "-o", filepath.Join(h.dir, "o.jsonl"))
	if st != cli.StatusDamage {
		h.t.Errorf("%s: verify has status 3, convert %d: %s", h.at, st, errs)
	}
	for _, line := range strings.Split(errs, "\n") {
		if strings.HasPrefix(line, "error ") && strings.Count(errs, line) > 1 {
			h.t.Errorf("%s: convert reports it more than once: %s", h.at, errs)
		}
	}
}

// TestWrongCellsAreTold: what verify finds wrong in a place without checksums is in the manifest of recover, as a
// finding or as the cause of a loss, whether or not something else is lost. A conversion that reads such a place to its
// end reports it as well, once, with status 3, and so does a read under a damage policy. Of a table that consists of
// files verify knows as much as of each file. STOA_SEED selects other cases.
func TestWrongCellsAreTold(t *testing.T) {
	dir, n, wrong, both := t.TempDir(), 60, 0, 0
	if testing.Short() {
		n = 25
	}
	first, _ := strconv.ParseUint(os.Getenv("STOA_SEED"), 10, 64)
	for _, place := range unproven(t, dir) {
		file, contradicted, beside := dataOf(t, place), 0, 0
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for seed := first; seed < first+uint64(n); seed++ {
			r, b := rand.New(rand.NewPCG(seed, 7)), slices.Clone(whole)
			for range 1 + seed%3 {
				b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			}
			if err := os.WriteFile(file, b, 0o644); err != nil {
				t.Fatal(err)
			}
			h := &harmed{t, dir, fmt.Sprintf("%s, seed %d", filepath.Base(place), seed), place}
			st, known, _ := h.verb("verify", "-f", "json")
			if st != cli.StatusDamage {
				h.place = file
				if st, _, _ := h.verb("verify", "-q"); st == cli.StatusDamage {
					t.Errorf("%s: verify of the file finds damage, verify of the table does not", h.at)
				}
				continue
			}
			if h.recovered(known) {
				beside++
			}
			if st, _, errs := h.verb("cat", "-f", "jsonl", "--damaged", "skip-rows"); st == cli.StatusFine {
				t.Errorf("%s: verify has status 3, cat --damaged 0: %s", h.at, errs)
			}
			if st, _, _ := h.verb("cat", "-f", "jsonl"); st == cli.StatusFine {
				contradicted++
				h.converted()
			}
		}
		if wrong, both = wrong+contradicted, both+beside; contradicted == 0 && place != file {
			t.Errorf("%s: no damage could be read whole", filepath.Base(place))
		}
	}
	if wrong < 3 || both < 3 {
		t.Errorf("only %d damages could be read whole, and %d had both losses and wrong cells", wrong, both)
	}
}
