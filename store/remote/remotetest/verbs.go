package remotetest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Command runs the command, and returns what it prints, and its status.
type Command func(args ...string) (said string, status int)

// Fixture fills a directory with files of several formats, one of them damaged. root is that of the project.
func Fixture(t testing.TB, root, dir string, run Command) {
	t.Helper()
	for to, from := range map[string]string{"kudu": "corpus/kudu/1.18.1/d_minor",
		"cluster": "format/kudu/testdata/file", "table": "corpus/carbon/2.3.0/managed/managed_del",
		"store/managed1":     "corpus/carbon/2.3.0/managed/managed1",
		"store/managed_part": "corpus/carbon/2.3.0/managed/managed_part",
		"dremel.red":         "corpus/redfile/red1/dremel.red", "key.cfile": "corpus/kudu/1.18.1/key_int32/k.ck.cfile",
		"file.trv": "corpus/trevni/v1.12.2/avro_primitives.trv"} {
		copied(t, filepath.Join(root, from), filepath.Join(dir, to))
	}
	for name, to := range map[string]string{"a.parquet": "parquet", "b.parquet": "parquet", "lake": "iceberg"} {
		said, status := run("convert", "-q", filepath.Join(root, "corpus/carbon/2.3.0/managed/managed_gsort"), "-o",
			filepath.Join(dir, name), "--to", to)
		if status != 0 {
			t.Fatal(said)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "key.cfile"))
	if err != nil {
		t.Fatal(err)
	}
	b[900] ^= 0x10
	files := map[string]string{"broken.cfile": string(b), "types.txt": "day: utf8, id: int64\n",
		"columns.txt": "id int\nname string\nday string\n",
		"rows.jsonl": `{"id":1,"name":"a","day":"x"}` + "\n" + `{"id":2,"name":"b","day":"y"}` + "\n" +
			`{"id":3,"name":"c","day":"x"}` + "\n"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func copied(t testing.TB, from, to string) {
	t.Helper()
	st, err := os.Stat(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o777)
	}
	if err == nil && st.IsDir() {
		err = os.CopyFS(to, os.DirFS(from))
	} else if err == nil {
		var b []byte
		if b, err = os.ReadFile(from); err == nil {
			err = os.WriteFile(to, b, 0o666)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reads print of an address what they print of the same files on a disk. IN is the place.
var reads = []string{
	"ls IN", "ls -f json IN", "ls IN/cluster",
	"count IN/cluster/wal --data-dirs IN/cluster/data", "head -n 2 IN/rows.jsonl --schema IN/types.txt",
	"census -f json IN/cluster", // as text it depends on the length of the place's name
	"history IN/cluster#autoinc", "history -f json IN/cluster#autoinc", "schema IN/kudu", "schema -f ddl IN/table",
	"meta IN/a.parquet", "meta IN/table", "stats -f json IN/kudu", "stats --each -f json IN/store",
	"advise IN/a.parquet", "describe IN/key.cfile", "describe -f json IN/dremel.red",
	"describe IN/lake", "meta IN/lake", "count IN/lake", "cat -f jsonl IN/kudu",
	"cat -f jsonl IN/*.parquet", "cat -f jsonl IN/**/*.parquet", "cat -f csv IN/store#managed1",
	"cat -f jsonl IN/cluster#autoinc --where id>7", "cat -f jsonl IN/table --columns id", "head -n 3 IN/table",
	"tail -n 3 IN/file.trv", "count IN/table", "count IN/*.parquet", "count --each IN/store", "count IN/store",
	"get IN/a.parquet --row 3", "get IN/a.parquet --key 7", "explain IN/a.parquet --where id>400",
	"explain -f json IN/kudu", "plan IN/a.parquet", "plan IN/kudu", "verify IN", "verify -f json IN/broken.cfile",
	"verify --quick IN/table", "verify --deep -f json IN/store", "diff IN/a.parquet IN/b.parquet",
	"diff IN/a.parquet IN/table", "cat -f csv IN/broken.cfile --damaged skip-rows",
	"recover -q IN/broken.cfile --to csv -o -", "convert -q IN/dremel.red --to jsonl -o -",
	"seal -q IN/a.parquet IN/store -o TMP/some.seal --parity 20%",
	"verify --deep --seal TMP/some.seal IN/a.parquet IN/store",
	"seal -q IN/key.cfile -o TMP/key.seal --parity 100%", "verify -f json --seal TMP/key.seal IN/broken.cfile",
	"recover -q --seal TMP/key.seal IN/broken.cfile -o TMP/again.cfile", "diff IN/key.cfile TMP/again.cfile",
	"rescue -q -f json IN/store -o TMP/rescued", "count --each TMP/rescued", "migrate -q IN/store -o TMP/lake",
	"count --each TMP/lake", "convert -q --all IN/store -o TMP/all", "count --each TMP/all",
}

// write is a line of the command that writes to OUT. What it prints is that of a disk; if there is a reason, it is
// refused with it at an address.
type write struct{ line, refused string }

var writes = []write{
	{"convert -q IN/a.parquet -o OUT/c.parquet", ""},
	{"convert -q IN/a.parquet --to cfile -o OUT/set/", ""},
	{"convert -q --all IN/store -o OUT/all/", ""},
	{"cat IN/a.parquet -o OUT/cat.csv", ""},
	{"get IN/a.parquet --row 3 -o OUT/get.jsonl", ""},
	{"recover -q IN/broken.cfile -o OUT/saved.parquet --manifest OUT/lost.json", ""},
	{"seal -q IN/a.parquet IN/key.cfile -o OUT/some.seal --parity 100%", ""},
	{"verify --seal OUT/some.seal IN/a.parquet IN/key.cfile", ""},
	{"seal -q IN/key.cfile -o OUT/key.seal --parity 100%", ""},
	{"recover -q --seal OUT/key.seal IN/broken.cfile -o OUT/again.cfile", ""},
	{"diff IN/key.cfile OUT/again.cfile", ""},
	{"plan IN/a.parquet -o OUT/splits.jsonl", ""},
	{"migrate -q IN/store -o OUT/lake/", ""},
	{"convert -q IN/a.parquet --to iceberg -o OUT/ice/", ""}, {"convert -q --catch-up IN/b.parquet -o OUT/ice", ""},
	{"diff IN/b.parquet OUT/ice", ""}, {"convert -q --catch-up IN/b.parquet -o OUT/ice", ""},
	{"convert -q IN/a.parquet --to delta -o OUT/delta/", ""}, {"convert -q --catch-up IN/b.parquet -o OUT/delta", ""},
	{"diff IN/b.parquet OUT/delta", ""}, {"cat -f jsonl OUT/delta --at 0", ""},
	{"convert -q IN/store#managed1 --every segment --to iceberg -o OUT/past", ""}, {"cat -f jsonl OUT/past", ""},
	{"rescue -q IN/store -o OUT/rescued/", "rescue"},
	{"convert -q --all IN/store --to kudu-backup -o OUT/backup/", "kudu-backup"},
	{"count --each OUT/all", ""}, {"count --each OUT/lake", ""}, {"cat -f jsonl OUT/set", ""},
	{"cat -f csv OUT/c.parquet", ""}, {"cat -f jsonl OUT/saved.parquet", ""}, {"cat OUT/get.jsonl", ""},
	{"create OUT/like --schema IN/a.parquet", ""}, {"schema OUT/like", ""},
	{"create OUT/t --schema IN/columns.txt --partition day", ""},
	{"load -q OUT/t IN/rows.jsonl", ""}, {"load -q OUT/t OUT/t", ""}, {"count OUT/t", ""},
	{"load -q OUT/t --stage job --task 0 IN/rows.jsonl", "staged on a disk"},
	{"merge -q OUT/t IN/rows.jsonl --key id", ""}, {"update -q OUT/t --set name=z --where id=2", ""},
	{"delete -q OUT/t --where id=1", ""}, {"cat -f jsonl OUT/t", ""},
	{"compact -q OUT/t --major", ""}, {"merge-index -q OUT/t", ""}, {"add-column -q OUT/t extra int", ""},
	{"set-type -q OUT/t id bigint", ""}, {"schema OUT/t", ""}, {"drop-column -q OUT/t extra", ""},
	{"set-property -q OUT/t comment=hello", ""}, {"drop-partition -q OUT/t day=y", ""}, {"cat -f jsonl OUT/t", ""},
	{"add-partition -q OUT/t day=q", "partition"}, {"rename -q OUT/t OUT/u", "renamed"},
	{"add-segment -q OUT/t IN/table", "segment"}, {"verify OUT/t", ""}, {"clean -q OUT/t --older-than -1m", ""},
	{"cat -f jsonl OUT/t", ""}, {"truncate -q OUT/t --yes", ""}, {"count OUT/t", ""}, {"drop -q OUT/t --yes", ""},
	{"count OUT/t", ""},
}

// varying is what differs between two runs, or two places of the same files.
var varying = []struct{ what, by string }{
	{`"stamp":"[^"]*"`, ``}, {`"plan":"[0-9a-f]+"`, ``}, {`,?"requests":\{[^}]*\}`, ``},
	{`(?m)^requests to stores.*\n`, ``},
	{`\bfile:[^"\s]*`, ``}, {`column_id=[0-9a-f-]+`, ``}, {`"(stoa.carbon.)?column_id":"[0-9a-f-]+"`, ``},
	{`-+`, `-`}, {`\s+`, ` `}, {`[0-9.]+ s\b`, ``}, {`"seconds": ?[0-9.e-]+`, ``}, {`"tool":\{[^}]*\}`, ``},
	{`/+`, `/`}, {`"(began|started|ended|at|time)": ?"[^"]*"`, ``},
}

var varies = func() (out []*regexp.Regexp) {
	for _, v := range varying {
		out = append(out, regexp.MustCompile(v.what))
	}
	return out
}()

// told is what lines of the command say of a place, without the names of places and what differs from run to run.
func told(run Command, line, in, out, tmp string) (said string, status int) {
	args := strings.Fields(line)
	for i := range args {
		args[i] = strings.NewReplacer("IN", in, "OUT", out, "TMP", tmp).Replace(args[i])
	}
	said, status = run(args...)
	for _, name := range []struct{ name, by string }{{out, "OUT"}, {in, "IN"}, {tmp, "TMP"}} {
		said = strings.ReplaceAll(said, name.name, name.by)
		if strings.HasPrefix(line, "plan ") { // as path.Join leaves the names of parts
			said = strings.ReplaceAll(said, strings.Replace(name.name, "://", ":/", 1), name.by)
		}
	}
	for i, re := range varies {
		said = re.ReplaceAllString(said, varying[i].by)
	}
	return said, status
}

// Verbs compares what each verb that reads says of the files at an address with what it says of them on a disk.
func Verbs(t testing.TB, run Command, disk, address string) (compared int) {
	t.Helper()
	one, two := t.TempDir(), t.TempDir()
	for _, line := range reads {
		want, status := told(run, line, disk, "nowhere", one)
		got, status2 := told(run, line, address, "nowhere", two)
		if verb, _, _ := strings.Cut(line, " "); verb == "migrate" || verb == "rescue" {
			want, got = "", "" // a report, with the lengths of files that have names of places in them
		}
		if got != want || status != status2 {
			t.Errorf("%s at %s: status %d, want %d: %s", line, address, status2, status, difference(got, want))
		}
		compared++
	}
	for _, place := range []string{"/a.parquet", "/kudu", "/table", "/cluster#autoinc", "/key.cfile"} {
		want, got := splits(t, run, disk+place), splits(t, run, address+place)
		if all, _ := run("cat", "-q", "-f", "jsonl", disk+place); got != want || got != all {
			t.Errorf("plan and scan of %s%s: %s", address, place, difference(got, want))
		}
		compared++
	}
	return compared
}

// splits returns the rows of all splits of a plan.
func splits(t testing.TB, run Command, place string) string {
	t.Helper()
	said, _ := run("plan", "-q", place)
	var rows strings.Builder
	for line := range strings.Lines(said) {
		var s struct {
			Split int `json:"stoa_split"`
		}
		if json.Unmarshal([]byte(line), &s) != nil || s.Split == 0 {
			continue
		}
		said, status := run("scan", "-q", "-f", "jsonl", "--split", strings.TrimSpace(line))
		if status != 0 {
			t.Errorf("scan of a split of %s: status %d: %s", place, status, said)
		}
		rows.WriteString(said)
	}
	return rows.String()
}

// Changes compares what each verb that writes does at an address with what it does on a disk, and that what cannot be
// done there says so.
func Changes(t testing.TB, run Command, disk, address string) (compared int) {
	t.Helper()
	local := t.TempDir()
	for _, w := range writes {
		got, status := told(run, w.line, address, address+"/out", local)
		if w.refused != "" {
			if status == 0 || !strings.Contains(got, w.refused) {
				t.Errorf("%s at %s: status %d: %s", w.line, address, status, got)
			}
			compared++
			continue
		}
		want, status2 := told(run, w.line, disk, local, local)
		switch verb, _, _ := strings.Cut(w.line, " "); {
		case verb == "migrate", verb == "clean", strings.HasPrefix(w.line, "verify OUT/t"):
			want, got = "", "" // sizes of reports, and names of files with times in them
		case status == 1 && status2 == 1: // a disk names what is beside a missing file
			want, got = "", ""
		}
		if got != want || status != status2 {
			t.Errorf("%s at %s: status %d, want %d: %s", w.line, address, status, status2, difference(got, want))
		}
		compared++
	}
	return compared
}

// Refusals checks that each verb that writes is refused at an address that is only read, and says why.
func Refusals(t testing.TB, run Command, address string) (compared int) {
	t.Helper()
	reasons := []string{"nothing is written to an address of a web server", "read-only", "rescue", "kudu-backup",
		"staged on a disk"}
	for _, w := range writes {
		verb, _, _ := strings.Cut(w.line, " ")
		only := []string{"count", "cat", "schema", "diff", "verify"} // read what others would have written
		if !strings.Contains(w.line, "OUT") || slices.Contains(only, verb) && !strings.Contains(w.line, "-o OUT") {
			continue
		}
		line := w.line
		if verb != "create" { // what is changed must exist
			line = strings.ReplaceAll(line+" ", "OUT/t ", "IN/table ")
		}
		said, status := told(run, line, address, address+"/out", t.TempDir())
		named := slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(said, r) })
		if status == 0 || !named && !strings.Contains(line, "--seal OUT") {
			t.Errorf("%s at %s: status %d: %s", line, address, status, said)
		}
		compared++
	}
	return compared
}

// difference returns where two texts begin to differ.
func difference(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	from := max(0, i-60)
	return "got …" + got[from:min(len(got), i+300)] + "\nwant …" + want[from:min(len(want), i+300)]
}
