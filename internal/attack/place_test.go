package attack

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTablesAreConserved: of a directory of tables of all formats, in which a file is removed, emptied, cut or
// overwritten at its beginning, every table comes out or is told. Where convert --all leaves something out
// neither it nor verify ends with 0, nor ls if it does not list the table.
func TestTablesAreConserved(t *testing.T) {
	a := newAttack(build(t), t.TempDir())
	f := &fixture{name: "place", dir: a.temp("place")}
	for i, name := range []string{"trevni/crc32", "redfile/e", "cfile/v2", "cfile/dir", "carbon/table",
		"parquet/crc", "arrow/file"} {
		k := slices.IndexFunc(makers, func(m maker) bool { return m.name == name })
		one, err := a.newFixture(&makers[k], 4, 4, int64(i)*1000, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := copyPlace(filepath.Join(one.dir, one.place),
			filepath.Join(f.dir, "t"+string(rune('a'+i))+filepath.Ext(one.place))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"file", "history"} {
		if err := copyPlace(filepath.Join("..", "..", "format", "kudu", "testdata", name),
			filepath.Join(f.dir, "kudu-"+name)); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if f.files, err = filesOf(f.dir); err != nil {
		t.Fatal(err)
	}
	all := a.tables(f, f.dir)
	if all.status != fine || len(all.rows) != 9 {
		t.Fatalf("whole, yet convert --all ends with %d and gives %d tables: %s", all.status, len(all.rows), all.said)
	}
	left := 0
	r := rand.New(rand.NewPCG(1, 6))
	for k, name := range f.files {
		if strings.HasSuffix(name, ".lock") || strings.HasSuffix(name, "SHA256SUMS") {
			continue
		}
		if strings.HasPrefix(name, "kudu-") && strings.Contains(name, "/data/data/") && r.IntN(4) > 0 { // they are many
			continue
		}
		size := fileSize(filepath.Join(f.dir, name))
		h := []harm{{op: "remove", file: k}}
		switch r.IntN(4) {
		case 0:
			h[0] = harm{op: "cut", file: k, n: [3]int64{size / 2}}
		case 1:
			h[0] = harm{op: "over", file: k, n: [3]int64{0, min(size, 64), 7}}
		}
		left += a.placeCase(t, f, all, h)
	}
	if left < 5 {
		t.Errorf("only %d tables were left out", left)
	}
}

// converted is what convert --all gave.
type converted struct {
	status int
	rows   map[string]int
	said   string
}

// tables converts all tables of a copy of the place.
func (a *attack) tables(f *fixture, dir string) converted {
	out := a.temp("all")
	defer os.RemoveAll(out)
	got := a.stoa.run("convert", "--all", dir, "-o", out, "--to", "jsonl", "--no-progress", "--no-check")
	c := converted{status: got.Status, rows: map[string]int{}, said: string(got.Stdout) + string(got.Stderr)}
	files, _ := filepath.Glob(filepath.Join(out, "*.jsonl"))
	for _, name := range files {
		b, _ := os.ReadFile(name)
		c.rows[filepath.Base(name)] = len(linesOf(b))
	}
	return c
}

// placeCase harms a copy and says how many tables were left out.
func (a *attack) placeCase(t *testing.T, f *fixture, all converted, h []harm) (left int) {
	dir := filepath.Join(a.root, "case", "place")
	os.RemoveAll(dir)
	if err := f.copyTo(dir); err != nil {
		t.Fatal(err)
	}
	if _, fit, err := f.apply(dir, h); err != nil || !fit {
		t.Fatalf("%v does not fit: %v", h, err)
	}
	// the file was the table: it is not there any more
	if h[0].op == "remove" && !strings.Contains(f.files[h[0].file], "/") {
		return 0
	}
	got := a.tables(f, dir)
	for name, n := range all.rows {
		if now, ok := got.rows[name]; !ok || now < n {
			left++
			verify, ls := a.stoa.run("verify", dir), a.stoa.run("ls", dir)
			listed := strings.Contains(string(ls.Stdout), strings.TrimSuffix(name, ".jsonl"))
			if got.status == fine || verify.Status == fine || !listed && ls.Status == fine {
				t.Errorf("%s %s: %s has %d rows of %d: convert --all ends with %d, verify with %d, ls with %d\n%.300s", h[0].op, f.files[h[0].file], name, now, n, got.status, verify.Status, ls.Status, got.said)
			}
		}
	}
	return left
}

func fileSize(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}
