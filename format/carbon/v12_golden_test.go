package carbon_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
)

// The golden tables of formats 1 and 2: see their README.
const goldenV12 = "../../corpus/carbon/1.0.0"

var writeGolden = flag.Bool("write", false,
	"write the digests of the golden tables, of the whole corpus' expected rows")

type goldenTable struct {
	Table    string `json:"table"`
	Format   string `json:"format"`
	Segment  string `json:"segment,omitempty"`
	Rows     int    `json:"rows"`
	Blocklet int    `json:"blocklet_size"`
	Sample   string `json:"sample"`
	SHA256   string `json:"sha256"`
}

func (g *goldenTable) options() stoa.OpenOptions {
	if g.Segment == "" {
		return stoa.OpenOptions{}
	}
	return stoa.OpenOptions{Opts: map[string]string{"segment": g.Segment}}
}

func goldenTables(t testing.TB) (m struct {
	Tables []goldenTable `json:"tables"`
}) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(goldenV12, "MANIFEST.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Tables) != 2 {
		t.Fatalf("got %d golden tables, want 2", len(m.Tables))
	}
	return m
}

// digest returns a hash of the rows that does not depend on their order.
func digest(rows []line) string {
	var all []string
	for _, r := range rows {
		all = append(all, r.String())
	}
	slices.Sort(all)
	h := sha256.New()
	for _, s := range all {
		h.Write([]byte(s + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

func TestGoldenV1V2(t *testing.T) {
	m := goldenTables(t)
	for i := range m.Tables {
		g := &m.Tables[i]
		sc, got, err := read(t, filepath.Join(goldenV12, g.Table), g.options(), stoa.ScanSpec{})
		if err != nil {
			t.Fatal(err)
		}
		if *writeGolden {
			g.SHA256 = digest(g.formula(t, sc))
		}
		if len(got) != g.Rows || digest(got) != g.SHA256 {
			t.Errorf("%s: got %d rows with a different digest, want %d", g.Table, len(got), g.Rows)
		}
		g.compare(t, sc, got)
	}
	if *writeGolden {
		b, err := json.MarshalIndent(m, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(goldenV12, "MANIFEST.json"), append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// formula returns the expected rows, from the corpus.
func (g *goldenTable) formula(t *testing.T, sc *arrow.Schema) []line {
	src := map[string]string{"v1_complex": "v1/complex", "v2_b2000": "v2/basic_b2000"}[g.Table]
	rows := jsonRows(t, filepath.Join(corpusDir(t), src, "expected.jsonl.gz"))[:g.Rows]
	nested(sc, rows)
	return wanted(sc, rows)
}

// compare compares every tenth row cell by cell.
func (g *goldenTable) compare(t *testing.T, sc *arrow.Schema, got []line) {
	sample := jsonRows(t, filepath.Join(goldenV12, g.Sample))
	if len(sample) != g.Rows/10 {
		t.Fatalf("%s: got %d rows in the sample", g.Table, len(sample))
	}
	if n := sc.NumFields(); n != len(sample[0]) {
		t.Errorf("%s: got %d columns, want %d", g.Table, n, len(sample[0]))
	}
	nested(sc, sample)
	byID := map[string]line{}
	for _, r := range got {
		byID[r["id"]] = r
	}
	var mine []line
	for _, w := range wanted(sc, sample) {
		mine = append(mine, byID[w["id"]])
	}
	if d := differ(mine, wanted(sc, sample), false); d != "" {
		t.Errorf("%s: %s", g.Table, d)
	}
}
