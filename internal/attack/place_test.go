package attack

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTablesAreConserved: in a directory of tables of all formats one file is removed, emptied, cut or overwritten at
// its beginning. Then every table is converted or reported. If convert --all leaves something out, neither it nor
// verify exits with 0, and neither does ls if it does not list the table.
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
		t.Fatalf("intact, but convert --all ends with %d and gives %d tables: %s", all.status, len(all.rows), all.said)
	}
	left := 0
	r := rand.New(rand.NewPCG(1, 6))
	for k, name := range f.files {
		if strings.HasSuffix(name, ".lock") || strings.HasSuffix(name, "SHA256SUMS") {
			continue
		}
		// one in four, because there are many
		if strings.HasPrefix(name, "kudu-") && strings.Contains(name, "/data/data/") && r.IntN(4) > 0 {
			continue
		}
		if testing.Short() && k%3 > 0 {
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
		t.Errorf("%d tables were left out: expected 5 or more", left)
	}
}

// TestTablesOfTrees: tables of all formats are placed at random in a tree of directories, including directories of
// other tables. ls, convert --all and verify find the same tables: those that were placed there.
func TestTablesOfTrees(t *testing.T) {
	a := newAttack(build(t), t.TempDir())
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("STOA_SEED"), "8"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 9))
	var made []*fixture
	for i, name := range []string{"trevni/crc32", "redfile/e", "redfile/split", "cfile/v2", "cfile/dir", "carbon/table",
		"carbon/dir", "parquet/crc", "arrow/file", "arrow/stream", "jsonl"} {
		k := slices.IndexFunc(makers, func(m maker) bool { return m.name == name })
		one, err := a.newFixture(&makers[k], seed%7+1, seed, int64(i)*1000, 1)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, one)
	}
	trees := 6
	if testing.Short() {
		trees = 2
	}
	for range trees {
		a.treeCase(t, r, made)
	}
}

// treeCase creates a tree, lists its tables, and harms one.
func (a *attack) treeCase(t *testing.T, r *rand.Rand, made []*fixture) {
	root := a.temp("tree")
	dirs, hosts := []string{root}, map[string]string{root: ""}
	for i := range 1 + r.IntN(4) {
		d := filepath.Join(dirs[r.IntN(len(dirs))], fmt.Sprintf("d%d", i))
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
		dirs, hosts[d] = append(dirs, d), ""
	}
	type planted struct{ at, format string }
	var all []planted
	var rows []int
	for i, k := range r.Perm(len(made))[:3+r.IntN(len(made)-3)] {
		f, dir := made[k], dirs[r.IntN(len(dirs))]
		for hosts[dir] == f.format() { // files that a table's own system keeps inside it are not listed
			dir = dirs[r.IntN(len(dirs))]
		}
		at := filepath.Join(dir, fmt.Sprintf("t%d%s", i, filepath.Ext(f.place)))
		if err := copyPlace(filepath.Join(f.dir, f.place), at); err != nil {
			t.Fatal(err)
		}
		if all, rows = append(all, planted{at, f.format()}), append(rows, len(f.ref)); filepath.Ext(f.place) == "" {
			dirs, hosts[at] = append(dirs, at), f.format()
		}
	}
	slices.Sort(rows)
	listed, converted, out := a.tablesOfTree(t, root)
	if !slices.Equal(listed, converted) {
		t.Errorf("%s: ls lists %q, convert --all converts %q", root, listed, converted)
	}
	if !slices.Equal(out, rows) {
		t.Errorf("%s: convert --all gives tables of %v rows, expected %v: %q", root, out, rows, converted)
	}
	if v := a.stoa.run("verify", root); v.Status != fine {
		t.Errorf("%s: intact, but verify ends with %d: %s", root, v.Status, v.Stdout)
	}
	one := all[r.IntN(len(all))]
	name := one.at
	if hosts[name] != "" {
		files, _ := filesOf(name)
		files = slices.DeleteFunc(files, func(f string) bool {
			return strings.HasPrefix(f, "t") && f != "table.json" || strings.HasPrefix(f, "d")
		})
		name = filepath.Join(name, files[r.IntN(len(files))])
	}
	if one.format == "jsonl" || os.Truncate(name, fileSize(name)*2/3) != nil {
		return
	}
	for _, args := range [][]string{{"verify", root},
		{"convert", "--all", root, "-o", a.temp("harmed") + "/o", "--to", "jsonl"}} {
		got := a.stoa.run(args...)
		if got.Status != damage {
			t.Errorf("%s was cut, and %s ends with %d: %s%s", name, args[0], got.Status, got.Stdout, got.Stderr)
		}
		stem := strings.TrimSuffix(filepath.Base(one.at), filepath.Ext(one.at))
		if said := string(got.Stdout) + string(got.Stderr); !strings.Contains(said, "/"+stem) &&
			!strings.Contains(said, "."+stem) && !strings.Contains(said, "#"+stem) {
			t.Errorf("%s was cut, and %s does not name the table: %s", name, args[0], said)
		}
	}
}

// tablesOfTree returns the tables according to ls and to convert --all, sorted, and their numbers of rows.
func (a *attack) tablesOfTree(t *testing.T, root string) (listed, converted []string, rows []int) {
	got := a.stoa.run("ls", root, "-f", "json")
	var list []struct{ Name, Format, Problem string }
	if err := json.Unmarshal(got.Stdout, &list); err != nil || got.Status != fine {
		t.Fatalf("%s: intact, but ls ends with %d: %v %s", root, got.Status, err, got.Stderr)
	}
	for _, e := range list {
		if e.Format != "" {
			listed = append(listed, e.Name)
		}
	}
	out := a.temp("all") + "/o"
	got = a.stoa.run("convert", "--all", root, "-o", out, "--to", "jsonl", "-f", "json")
	if got.Status != fine {
		t.Errorf("%s: intact, but convert --all ends with %d: %s", root, got.Status, got.Stderr)
	}
	for d := json.NewDecoder(bytes.NewReader(got.Stdout)); ; {
		var one struct {
			Source string
			Rows   int
		}
		if d.Decode(&one) != nil {
			break
		}
		converted, rows = append(converted, one.Source), append(rows, one.Rows)
	}
	slices.Sort(listed)
	slices.Sort(converted)
	slices.Sort(rows)
	return listed, converted, rows
}

// converted is the result of convert --all.
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

// placeCase harms a copy and returns how many tables were left out.
func (a *attack) placeCase(t *testing.T, f *fixture, all converted, h []harm) (left int) {
	dir := filepath.Join(a.root, "case", "place")
	os.RemoveAll(dir)
	if err := f.copyTo(dir); err != nil {
		t.Fatal(err)
	}
	if _, fit, err := f.apply(dir, h); err != nil || !fit {
		t.Fatalf("%v does not fit: %v", h, err)
	}
	// the file was the whole table, so nothing is left to report
	if h[0].op == "remove" && !strings.Contains(f.files[h[0].file], "/") {
		return 0
	}
	got := a.tables(f, dir)
	for name, n := range all.rows {
		if now, ok := got.rows[name]; !ok || now < n {
			left++
			stem := strings.TrimSuffix(name, ".jsonl")
			verify, ls := a.stoa.run("verify", dir), a.stoa.run("ls", dir)
			listed := strings.Contains(string(ls.Stdout), stem)
			if listed && !ok && !strings.Contains(got.said, stem) {
				t.Errorf("%s %s: ls knows the table %s, of which convert --all says nothing: %s", h[0].op,
					f.files[h[0].file], name, got.said)
			}
			if got.status == fine || verify.Status == fine || !listed && ls.Status == fine {
				t.Errorf("%s %s: %s has %d rows of %d: convert --all ends with %d, verify with %d, ls with %d\n%.300s",
					h[0].op, f.files[h[0].file], name, now, n, got.status, verify.Status, ls.Status, got.said)
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
