package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"stoa/cmd/stoa/internal/cli"
)

// TestJSONSchemas: docs/json has a schema for every document, which is that of the type that is printed. -update writes
// them.
func TestJSONSchemas(t *testing.T) {
	x := newTypesOf(t)
	want := map[string]bool{"README.md": true}
	for _, d := range jsonDocs {
		name := filepath.Join("../../docs/json", d.name+".json")
		want[filepath.Base(name)] = true
		s := x.schema(d)
		if *update {
			if err := os.WriteFile(name, s, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if b, err := os.ReadFile(name); err != nil || !bytes.Equal(b, s) {
			t.Errorf("%s is not the schema of what is printed (-update writes it): %v", name, err)
		}
		if readme, err := os.ReadFile("../../docs/json/README.md"); err != nil ||
			!strings.Contains(string(readme), "("+d.name+".json)") {
			t.Errorf("docs/json/README.md has no %s.json", d.name)
		}
	}
	files, err := os.ReadDir("../../docs/json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !want[f.Name()] {
			t.Errorf("docs/json/%s is the schema of nothing", f.Name())
		}
	}
}

// jsonRuns are command lines by the document that they print, run one after the other.
const jsonRuns = `
demo: demo data --damage -f json
ls: ls data -f json
ls: ls data/kudu -f json
ls: ls data/carbon/managed_del -f json
ls-segments: ls --segments data/carbon/managed_del -f json
ls-blocks: ls --blocks data/kudu -f json
ls-blocks: ls --unnamed data/kudu -f json
ls: ls data/damaged -f json
census: census data/kudu -f json
history: history data/kudu#d_major -f json
schema: schema data/flat.red -f json
schema: schema data/kudu#d_major -f json
schema: schema data/carbon/managed_del -f json
meta: meta data/flat.red -f json
meta: meta data/key.cfile -f json
meta: meta data/kudu#d_major -f json
meta: meta data/carbon/managed_del -f json
meta: meta data/dremel.trv -f json
stats: stats data/flat.red -f json
stats: stats data/key.cfile -f json
stats: stats data/kudu#d_major -f json
stats: stats data/carbon/managed_del -f json
stats: stats data/primitives.trv -f json
stats-rowsets: stats data/kudu#d_major --rowsets -f json
advise: advise data/flat.red -f json
describe: describe data/key.cfile -f json
describe: describe data/damaged/key.cfile -f json
count: count data/flat.red -f json
count: count --each data/flat.red data/key.cfile -f json
stats: stats --each --sum data/flat.red data/key.cfile -f json
explain: explain data/key.cfile --where value>2000000000 -f json
explain: explain data/flat.red --where i>0 -f json
explain: explain data/kudu#d_major --analyze -f json
plan: plan data/flat.red
convert: convert data/flat.red -o flat.parquet -f json
convert: convert data/kudu#d_major -o k.csv -f json
convert-all: convert --all data -o all/ --to parquet -f json
verify: verify data/flat.red -f json
verify: verify data/damaged -f json
verify: verify data -f json
convert: recover data/damaged/key.cfile -o saved.parquet -f json
manifest: recover data/damaged/key.cfile -o saved2.parquet --manifest lost.json -f json
convert-all: recover --all data/damaged -o ra/ -f json
rescue: rescue data -o rescued -f json
migrate: migrate data/kudu data/carbon data/flat.red --dry-run -f json
migrate: migrate data/kudu data/carbon data/flat.red -o migrated -f json
seal: seal data/key.cfile data/flat.red -o a.seal --parity 5% -f json
recover-seal: recover --seal a.seal data/key.cfile data/flat.red -o rep -f json
diff: diff data/flat.red flat.parquet -f json
diff: diff data/key.cfile saved.parquet --on value -f json
finding: finding -f json
finding: finding cfile.block.checksum -f json
formats: formats -f json
formats: formats parquet -f json
config: config -f json
version: version -f json
version: version --json
change: create store#s.t --schema types.txt -f json
change: create store#s.x --schema types.txt --dry-run -f json
load: load store#s.t rows.csv --source-opt header=true -f json
load: load store#s.t rows.csv --source-opt header=true -f json
merge: merge store#s.t rows.csv --source-opt header=true --key id -f json
change: update store#s.t --set v=9 --where id=1 -f json
change: delete store#s.t --where id=2 -f json
load: load store#s.t rows.csv --source-opt header=true -f json
change: delete store#s.t --segment 3 -f json
change: compact store#s.t --major -f json
change: merge-index store#s.t -f json
change: clean store#s.t --dry-run -f json
change: clean store#s.t -f json
change: add-column store#s.t w int -f json
change: set-type store#s.t w bigint -f json
change: rename store#s.t w2 --column w -f json
change: drop-column store#s.t w2 -f json
change: set-property store#s.t comment=x -f json
change: create store#s.p --schema types.txt --partition v -f json
change: add-partition store#s.p v=1 -f json
load: load store#s.p rows.csv --source-opt header=true -f json
change: drop-partition store#s.p v=2 -f json
change: truncate store#s.t --yes -f json
change: create store#s.u --schema types.txt -f json
load: load store#s.u rows.csv --source-opt header=true -f json
change: add-segment store#s.u more -f json
change: drop store#s.t --yes -f json
`

// TestJSONOutputs: what verbs print with -f json, on intact and damaged files, is as the schemas in docs/json have it.
// A validator that is not ours compares them. Every verb with -f json is tried.
func TestJSONOutputs(t *testing.T) {
	schemas := map[string]*jsonschema.Schema{}
	c := jsonschema.NewCompiler()
	for _, d := range jsonDocs {
		name, err := filepath.Abs(filepath.Join("../../docs/json", d.name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if schemas[d.name], err = c.Compile(name); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"types.txt": "id int\nv int\n", "rows.csv": "id,v\n1,2\n2,3\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tried, seen := map[string]bool{}, map[string]bool{"scan": true} // of TestWorker
	for _, line := range strings.Split(strings.TrimSpace(jsonRuns), "\n") {
		doc, words, _ := strings.Cut(line, ": ")
		args := strings.Fields(words)
		if args[0] == "add-segment" {
			if err := os.CopyFS("more", os.DirFS("store/s/u/Fact/Part0/Segment_0")); err != nil {
				t.Fatal(err)
			}
		}
		tried[args[0]], seen[doc] = true, true
		var out, errs bytes.Buffer
		st := run(context.Background(), args, strings.NewReader(""), &out, &errs)
		if st != 0 && st != cli.StatusDamage {
			t.Errorf("%s: status %d: %s", words, st, &errs)
			continue
		}
		documents := out.Bytes()
		if doc == "manifest" {
			var err error
			if documents, err = os.ReadFile("lost.json"); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		for dec := json.NewDecoder(bytes.NewReader(documents)); ; n++ {
			var raw json.RawMessage
			if err := dec.Decode(&raw); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", words, err)
			}
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
			if err == nil {
				err = schemas[doc].Validate(v)
			}
			if err != nil {
				t.Errorf("%s: %.300s\n%v", words, raw, err)
			}
		}
		if n == 0 {
			t.Errorf("%s printed nothing", words)
		}
	}
	for _, d := range jsonDocs {
		if !seen[d.name] {
			t.Errorf("no command line prints the document %s", d.name)
		}
	}
	a := cli.NewApp(strings.NewReader(""), io.Discard, io.Discard)
	rootCmd(a)
	rows := map[string]bool{"cat": true, "head": true, "tail": true, "get": true, "sql": true, "scan": true}
	other := map[string]bool{"serve": true, "browse": true, "mcp": true, "skill": true, "completion": true, "man": true,
		"flight": true}
	for _, c := range a.Verbs {
		f := c.Flags().Lookup("format")
		switch name := c.Name(); {
		case rows[name] || other[name]: // rows have no schema but the table's; the others print no documents
		case name != "plan" && (f == nil || !strings.Contains(f.Usage, "json")):
			t.Errorf("%s has no -f json", name)
		case !tried[name]:
			t.Errorf("%s -f json is not tried", name)
		}
	}
	if schemas["version"].Validate(map[string]any{"version": "1", "go": "x", "platform": "y", "modified": 1}) == nil ||
		schemas["count"].Validate(map[string]any{"rows": json.Number("1"), "more": true}) == nil {
		t.Error("the validator accepts what is wrong")
	}
}
