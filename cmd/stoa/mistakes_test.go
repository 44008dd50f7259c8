package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mistakes are wrong command lines, their status, and the part of the message, or of the hint below it, that names the
// next step.
var mistakes = []struct {
	args   string // fields
	status int
	want   string
}{
	{"head nowhere.parquet", 1, "stoa ls . lists what is there"},
	{"head no/where.parquet", 1, "stoa ls . lists what is there"},
	{"cat empty", 2, "the directory is empty"},
	{"head backup", 2, "--from kudu-backup"},
	{"count backup", 2, "--from kudu-backup"},
	{"head nest", 2, "lies in directories, such as nest/a"},
	{"count try", 2, "name one: try#d_major, try/carbon#managed_del"},
	{"cat try/kudu#nope", 2, "tables are d_major"},
	{"cat try/flat.red#x", 2, "a RedFile has no tables"},
	{"cat k.csv -c nam", 2, "did you mean name?"},
	{"count k.csv --where idd=3", 2, "did you mean id?"},
	{"count k.csv --where id=", 2, "expected a literal"},
	{"count k.csv --where id=\"x\"", 2, "text goes into single quotes: 'x'"},
	{"convert k.csv -o x.foo", 2, "stoa formats lists the formats"},
	{"convert k.csv", 2, "-o - is standard output"},
	{"convert k.csv -o nodir/x.parquet", 1, "mkdir -p nodir makes it"},
	{"convert k.csv -o k.csv", 2, "choose another name"},
	{"convert k.csv -o x.parquet --to parqet", 2, "stoa formats lists them"},
	{"convert k.csv -o x.parquet --opt compresion=zstd", 2, "lists a format's options"},
	{"convert k.csv -o empty", 2, "does not say which format"},
	{"convert k.csv -o full/ --to cfile", 1, "no file in it says that stoa wrote it"},
	{"head --at 5 k.csv", 2, "it is for kudu"},
	{"head --partial k.csv", 2, "it is for kudu"},
	{"diff k.csv two.csv --on xx", 2, "is not in both tables"},
	{"diff k.csv", 2, "two tables"},
	{"get try/flat.red --key 123456789", 1, "the table has no key, and no row has 123456789 in its first column"},
	{"get try/kudu#d_major --key zz", 2, "column id, which is int64"},
	{"get try/key.cfile --key 1", 1, "no row has the key (1): the key is (value)"},
	{"get k.csv", 2, "--row 0"},
	{"scan k.csv", 2, "stoa plan makes splits"},
	{"scan --split {}", 2, "a split is a line that stoa plan prints"},
	{"split k.csv", 2, "stoa --help lists them"},
	{"recover k.csv", 2, "-o - is standard output"},
	{"head k.csv -n x", 2, "that is no number"},
	{"head k.csv -f xml", 2, "the forms are table,"},
	{"cat k.csv --rows 5", 2, "for example 100:200"},
	{"cat k.csv --damaged foo", 2, "the policies are fail,"},
	{"finding nope.x", 2, "stoa finding lists the codes"},
	{"formats nope", 2, "the formats are kudu,"},
	{"demo try", 2, "a directory of its own"},
	{"head k.zip", 1, "this is a ZIP archive"},
	{"head zero.parquet", 3, "the file is too short"},
	{"head words.txt", 1, "--from FORMAT forces one"},
	{"convert try/flat.red try/key.cfile -o x.parquet", 2, "they are not one table"},
	{"k.csv", 2, "stoa head k.csv"},
	{"recover k.csv -o r.csv --manifest r.csv", 2, "give one of them another name"},
	{"head k.csv 5", 1, "for so many rows: -n 5"},
	{"convert k.csv x.parquet", 2, "if x.parquet is the output: -o x.parquet"},
	{"convert k.csv -o x.parquet -to csv", 2, "did you mean --to?"},
	{"cat k.csv --colums id", 2, "did you mean --columns?"},
	{"cat k.csv --col id", 2, "did you mean --columns?"},
	{"cat k.csv --zebra", 2, "stoa cat --help says more"},
	{"help nope", 2, "stoa --help lists them"},
	{"help hed", 2, "did you mean head"},
	{"head gs://example/k.parquet", 1, "no client for gs: addresses"},
	{"create store#t --schema words.txt", 2, "words.txt: "},
	{"ls k.csv -o k.csv", 2, "choose another name"},
	{"recover try/kudu -o try/kudu/x.parquet", 2, "lies in the source try/kudu"},
	{"recover try/kudu -o try/kudu/data/x/", 2, "choose a place outside of it"},
	{"recover try/kudu#d_major -o full/../try/kudu/x.parquet", 2, "lies in the source"},
	{"recover try/kudu -o link/x.parquet", 2, "lies in the source"},
	{"recover link -o try/kudu/x.parquet", 2, "lies in the source"},
	{"recover link/../kudu -o try/kudu/x.parquet", 2, "lies in the source"},
	{"recover try/kudu -o deep/../x.parquet", 2, "lies in the source"},
	{"recover try/kudu -o x.csv --manifest try/kudu/lost.json", 2, "lies in the source"},
	{"recover try/kudu -o try/x.csv --data-dirs try/kudu/data,try", 2, "lies in the source try"},
	{"convert two -o two/x.parquet", 2, "lies in the source two"},
	{"convert --all try -o try/out", 2, "lies in the source try"},
	{"cat try/carbon/managed_del -o try/carbon/managed_del/x.csv", 2, "lies in the source"},
	{"verify try -o try/x.txt", 2, "lies in the source"},
	{"ls try -o try/x.txt", 2, "lies in the source"},
}

// TestMistakes: every message names the next step, and none is a crash.
func TestMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	if st := run(context.Background(), []string{"demo", "try"}, strings.NewReader(""), &bytes.Buffer{},
		&bytes.Buffer{}); st != 0 {
		t.Fatalf("demo: got status %d, want 0", st)
	}
	for _, d := range []string{"empty", "full"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("two", 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "try/kudu", "deep": "try/kudu/data"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	if st := run(context.Background(), strings.Fields("convert -q --to kudu-backup -o backup try/kudu"),
		strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}); st != 0 {
		t.Fatalf("convert to a backup: got status %d, want 0", st)
	}
	if err := os.MkdirAll("nest/a/b", 0o755); err != nil {
		t.Fatal(err)
	}
	before := filesIn(t, "try")
	for name, text := range map[string]string{"two/a.csv": "id\n1\n", "two/b.csv": "id\n2\n",
		"k.csv": "id,name\n1,x\n2,y\n", "two.csv": "id,name\n1,x\n2,y\n", "k.zip": "PK\x03\x04....",
		"zero.parquet": "", "words.txt": "hello", "full/a": "a",
		"nest/a/b/k.csv": "id\n1\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range mistakes {
		var out, errs bytes.Buffer
		st := run(context.Background(), strings.Fields(m.args), strings.NewReader(""), &out, &errs)
		if st != m.status || !strings.Contains(errs.String(), m.want) ||
			!strings.Contains("\n"+errs.String(), "\nstoa: ") {
			t.Errorf("stoa %s: got status %d, %s, want %d, %q", m.args, st, errs.String(), m.status, m.want)
		}
	}
	if after := filesIn(t, "try"); after != before {
		t.Errorf("sources changed: got %s, want %s", after, before)
	}
	t.Logf("%d mistakes", len(mistakes))
}

// filesIn lists the files below a directory with their sizes.
func filesIn(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		fmt.Fprintln(&b, p, info.Size())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
