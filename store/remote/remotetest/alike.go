package remotetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// kinds are a file of each format, directories of each kind, and what is no table, or is not there: places of Fixture,
// with what Alike adds.
var kinds = []string{"/a.parquet", "/key.cfile", "/broken.cfile", "/dremel.red", "/file.trv", "/rows.jsonl",
	"/rows.csv", "/rows.arrow", "/cut.cfile", "/empty.bin", "/words.txt", "/kudu", "/cluster", "/cluster/wal", "/table",
	"/store", "/lake", "/set", "/folders", "/nothing", "/nowhere", "/nowhere/file", "/a.parquet/below", "/key.cfile/",
	"/store/", "/kudu#nobody", "/key.cfile#nobody", "/*.trv", "/*.nothing"}

// onEach are lines for each of the places, AT. Those that write, write to TMP.
var onEach = []string{"ls AT", "ls -f json AT", "ls --segments AT", "ls --blocks AT", "census -f json AT", "schema AT",
	"meta -f json AT", "stats -f json AT", "stats --each -f json AT", "advise AT", "describe AT", "count AT",
	"count --each AT", "head -n 2 AT", "tail -n 2 AT", "get AT --row 0", "cat -f jsonl AT", "explain AT", "plan AT",
	"history AT", "verify AT", "verify --quick AT", "verify --deep -f json AT", "diff AT AT",
	"convert AT -o TMP/one.parquet", "convert --all AT -o TMP/all", "recover AT -o TMP/saved.parquet",
	"recover --all AT -o TMP/recovered", "migrate AT -o TMP/lake", "rescue AT -o TMP/rescued",
	"seal AT -o TMP/some.seal", "create TMP/like --schema AT", "load TMP/like AT"}

// AddKinds adds to Fixture's directory what it lacks of kinds.
func AddKinds(t testing.TB, dir string, run Command) {
	t.Helper()
	for name, to := range map[string]string{"rows.csv": "csv", "rows.arrow": "arrow", "set": "cfile"} {
		if said, status := run("convert", "-q", filepath.Join(dir, "a.parquet"), "-o", filepath.Join(dir, name), "--to",
			to); status != 0 {
			t.Fatal(said)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "key.cfile"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cut.cfile": string(b[:len(b)/2]), "empty.bin": "",
		"words.txt": "no table\n", "folders/one/a.trv": "", "folders/two/three/b.txt": "text\n",
		"nothing/_hidden": "text\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// Alike compares the status and the output of each verb that reads, for a file and a directory of each kind, at an
// address and on a disk.
func Alike(t testing.TB, run Command, disk, address string) (compared int) {
	t.Helper()
	for i, place := range kinds {
		one, two := t.TempDir(), t.TempDir()
		for k, line := range onEach {
			if testing.Short() && (i+k)%6 != 0 {
				continue
			}
			line = strings.ReplaceAll(line, "AT", "IN"+place)
			want, status := told(run, line, disk, "nowhere", one)
			got, status2 := told(run, line, address, "nowhere", two)
			switch verb, _, _ := strings.Cut(line, " "); {
			case verb == "migrate", verb == "rescue": // a report, folded, with lengths of files that have names in them
				want, got = "", ""
			case strings.HasSuffix(place, "/below"): // a store may have an object, and others below it
				want, got = "", ""
			default:
				want, got = withoutHints(want, place), withoutHints(got, place)
			}
			if status != status2 {
				t.Errorf("%s at %s: status %d, want %d: %s", line, address, status2, status, difference(got, want))
			} else if got != want {
				t.Errorf("%s at %s: %s", line, address, difference(got, want))
			}
			compared++
		}
		if want, got := names(t, one), names(t, two); got != want {
			t.Errorf("what is made of %s%s: %s", address, place, difference(got, want))
		}
	}
	return compared
}

// hint is the hint about what is missing, which names a place of a disk.
var hint = regexp.MustCompile(`(stoa: .* no such file or directory) stoa ls \S+ lists what is there`)

// sealed is the size of a seal, which has the names of the files in it.
var sealed = regexp.MustCompile(`(some\.seal: )[0-9.]+ k?B`)

// withoutHints removes what differs: hints, sizes of seals, and the slash at a place's end, which an address does not
// keep.
func withoutHints(said, place string) string {
	if short, ok := strings.CutSuffix(place, "/"); ok {
		said = strings.ReplaceAll(said, "IN"+place, "IN"+short)
	}
	return sealed.ReplaceAllString(hint.ReplaceAllString(said, "$1"), "$1")
}

// drawn are the parts of names that are random.
var drawn = regexp.MustCompile("[0-9]{12,}|[0-9a-f]{8}(-[0-9a-f-]+)?")

// names returns the names of all files below a directory.
func names(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, name)
		rel = drawn.ReplaceAllString(rel, "N")
		out.WriteString(filepath.ToSlash(rel) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}
