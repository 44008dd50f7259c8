package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fewTables returns a tablet server of the dead cluster that has only these tables, without its master.
func fewTables(t *testing.T, tables ...string) (files map[string][]byte, rows map[string]int64) {
	t.Helper()
	files, rows = deadCluster(t)
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return strings.HasPrefix(name, "master/") })
	dir := t.TempDir()
	writeFiles(t, dir, files)
	status, text := printedBy("ls", "--blocks", dir, "-f", "json")
	var blocks []struct {
		Table, Object string
		Tablet        string `json:"tablet-id"`
	}
	if err := json.Unmarshal([]byte(text), &blocks); err != nil || status != 0 {
		t.Fatal(status, err)
	}
	others := map[string]bool{}
	for _, b := range blocks {
		if !slices.Contains(tables, b.Table) {
			others[b.Tablet] = true
			delete(files, strings.TrimPrefix(b.Object, dir+"/"))
			delete(rows, b.Table)
		}
	}
	maps.DeleteFunc(files, func(name string, _ []byte) bool {
		return others[filepath.Base(name)] || others[filepath.Base(filepath.Dir(name))]
	})
	maps.DeleteFunc(rows, func(name string, _ int64) bool { return !slices.Contains(tables, name) })
	return files, rows
}

// filesBelow returns the files of a place that a run writes for its tables, with their bytes.
func filesBelow(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		base := filepath.Base(name)
		if err != nil || d.IsDir() || strings.HasPrefix(base, ".stoa-convert") || strings.HasPrefix(base, "report.") {
			return err
		}
		b, err := os.ReadFile(name)
		out[strings.TrimPrefix(name, dir+"/")] = b
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestResumedRunsKeepNewerTables: a resumed run, of any verb, never replaces what an earlier one wrote of a table by
// what it reads now if the log does not reach as far any more: the files stay as they are, nothing is beside them, and
// the status says that the sources have less. When the log is back, all is whole.
func TestResumedRunsKeepNewerTables(t *testing.T) {
	cluster, rows := fewTables(t, "d_wal", "d_raw")
	log := logOfWAL(t, cluster)
	for _, verb := range [][]string{{"convert", "--all"}, {"rescue"}, {"convert", "--all", "--file-size", "20kB"}} {
		for _, size := range []int{-1, walOperation, walCommit, walOperation + 4000} {
			dir := t.TempDir()
			in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
			writeFiles(t, in, cluster)
			args := append(slices.Clone(verb), in, "-o", out)
			if status, text := printedBy(args...); status != 0 {
				t.Fatalf("%v: status %d: %s", verb, status, text)
			}
			before := filesBelow(t, out)
			if err := os.Remove(filepath.Join(in, log)); err != nil {
				t.Fatal(err)
			}
			if size >= 0 {
				writeFiles(t, in, map[string][]byte{log: cluster[log][:size]})
			} else if err := os.RemoveAll(filepath.Join(in, "tserver", "wal", "wals")); err != nil {
				t.Fatal(err)
			}
			status, text := printedBy(append(args, "--resume")...)
			folded := strings.Join(strings.Fields(text), " ")
			if status != 3 || !strings.Contains(folded, "is kept (1,669 rows)") || !strings.Contains(folded, "d_wal") ||
				strings.Contains(folded, "--damaged") {
				t.Errorf("%v, log of %d bytes: status %d: %s", verb, size, status, text)
			}
			after := filesBelow(t, out)
			for name, b := range before {
				if strings.HasPrefix(name, "d_wal") && !bytes.Equal(b, after[name]) || after[name] == nil {
					t.Errorf("%v, log of %d bytes: %s is gone, or another one", verb, size, name)
				}
			}
			if len(after) != len(before) {
				t.Errorf("%v, log of %d bytes: %d files, and then %d", verb, size, len(before), len(after))
			}
			writeFiles(t, in, cluster)
			if status, text := printedBy(append(args, "--resume")...); status != 0 {
				t.Errorf("%v, the log is back: status %d: %s", verb, status, text)
			}
			if n := countOf(t, filepath.Join(out, "d_wal*")); n != rows["d_wal"] {
				t.Errorf("%v: %d rows", verb, n)
			}
		}
	}
}

// TestResumedRunsKeepNewerObjects: the same at an address, where an object cannot be put aside.
func TestResumedRunsKeepNewerObjects(t *testing.T) {
	cluster, rows := fewTables(t, "d_wal", "d_raw")
	log := logOfWAL(t, cluster)
	for _, verb := range [][]string{{"convert", "--all"}, {"recover", "--all"}} {
		s3, dir := emptyBucket(t)
		asS3(t, s3)
		in := t.TempDir()
		writeFiles(t, in, cluster)
		args := append(slices.Clone(verb), in, "-o", "s3://bucket/out/")
		if status, text := printedBy(args...); status != 0 {
			t.Fatalf("%v: status %d: %s", verb, status, text)
		}
		before := filesBelow(t, dir)
		writeFiles(t, in, map[string][]byte{log: cluster[log][:walCommit]})
		status, text := printedBy(append(args, "--resume")...)
		if status != 3 || !strings.Contains(text, "is kept (1,669 rows)") {
			t.Errorf("%v: status %d: %s", verb, status, text)
		}
		if after := filesBelow(t, dir); !maps.EqualFunc(before, after, bytes.Equal) {
			t.Errorf("%v: the objects are others: %d and %d", verb, len(before), len(after))
		}
		writeFiles(t, in, cluster)
		if status, text := printedBy(append(args, "--resume")...); status != 0 {
			t.Errorf("%v, the log is back: status %d: %s", verb, status, text)
		}
		if n := countOf(t, filepath.Join(dir, "out", "d_wal*")); n != rows["d_wal"] {
			t.Errorf("%v: %d rows", verb, n)
		}
	}
}

func countOf(t *testing.T, pattern string) (n int64) {
	t.Helper()
	all, _ := filepath.Glob(pattern)
	if len(all) != 1 {
		t.Fatalf("%s: %v", pattern, all)
	}
	status, text := printedBy("count", all[0])
	for _, c := range strings.TrimSpace(text) {
		n = n*10 + int64(c-'0')
	}
	if status != 0 {
		t.Errorf("%s: %s", all[0], text)
	}
	return n
}

// The last two pairs of operations of the log of d_wal after which the earlier state has as many rows, or more: updates
// and deletes. The number is that at which the commit ends.
const walDeletes, walBeforeDeletes, walUpdates, walBeforeUpdates = 103732, 102436, 133905, 127947

// TestResumedRescueKeepsNewerValues: a tablet that is made of its log alone is not replaced by what a shorter log
// makes, though that has as many rows (without the last updates) or more (without the last deletes).
func TestResumedRescueKeepsNewerValues(t *testing.T) {
	cluster, _ := fewTables(t, "d_wal")
	log := logOfWAL(t, cluster)
	tablet := filepath.Base(filepath.Dir(log))
	maps.DeleteFunc(cluster, func(name string, _ []byte) bool {
		return strings.HasPrefix(name, "tserver/data/data/") && !strings.HasSuffix(name, "instance")
	})
	delete(cluster, "tserver/wal/tablet-meta/"+tablet)
	for _, sizes := range [][2]int{{walUpdates, walBeforeUpdates}, {walDeletes, walBeforeDeletes}} {
		for _, flags := range [][]string{nil, {"--file-size", "20kB"}} {
			dir := t.TempDir()
			in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
			write := func(size int) {
				writeFiles(t, in, cluster)
				writeFiles(t, in, map[string][]byte{log: cluster[log][:size]})
			}
			write(sizes[0])
			first, _ := rescueInto(t, []string{in}, out, flags...)
			before := filesBelow(t, out)
			write(sizes[1])
			second, status := rescueInto(t, []string{in}, out, append(flags, "--resume")...)
			if status != 3 || len(first.Tables) != 1 ||
				!slices.Equal(first.Tables[0].ReadTo, second.Tables[0].ReadTo) ||
				!strings.Contains(strings.Join(second.Tables[0].Why, " "), "is kept") {
				t.Errorf("%v: status %d: %+v", sizes, status, second.Tables)
			}
			if after := filesBelow(t, out); !maps.EqualFunc(before, after, bytes.Equal) {
				t.Errorf("%v: the files are not those that were there", sizes)
			}
			write(len(cluster[log]))
			third, _ := rescueInto(t, []string{in}, out, append(flags, "--resume")...)
			if *third.Tables[0].Rows != 1669 || slices.Equal(first.Tables[0].ReadTo, third.Tables[0].ReadTo) {
				t.Errorf("%v: what is newer is not written: %+v", sizes, third.Tables[0])
			}
		}
	}
}

// TestResumedRescueOfDirectories: a table of a lake, of a server's directories, or of a backup counts as a file does:
// if the sources change, it is kept, reported with its rows and where it is, and nothing is beside it. When the sources
// are as they were, all is whole.
func TestResumedRescueOfDirectories(t *testing.T) {
	cluster, rows := fewTables(t, "d_wal", "d_raw")
	for _, to := range []string{"iceberg", "delta", "kudu-fs", "kudu-backup"} {
		for _, gone := range []string{"tserver/wal/wals", "tserver/data"} {
			dir := t.TempDir()
			in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
			writeFiles(t, in, cluster)
			first, status := rescueInto(t, []string{in}, out, "--to", to)
			if status != 0 {
				t.Fatalf("%s: status %d", to, status)
			}
			entries := func() []string {
				all, _ := filepath.Glob(filepath.Join(out, "*", "*"))
				if to == "kudu-backup" { // a table that is written again gets another time
					for i := range all {
						all[i] = filepath.Dir(all[i])
					}
				}
				return all
			}
			before := entries()
			if err := os.Rename(filepath.Join(in, gone), filepath.Join(dir, "aside")); err != nil {
				t.Fatal(err)
			}
			second, status := rescueInto(t, []string{in}, out, "--to", to, "--resume")
			if status != 3 || len(second.Tables) != len(first.Tables) {
				t.Errorf("%s without %s: status %d, %d tables", to, gone, status, len(second.Tables))
			}
			for _, x := range second.Tables {
				if x.Output == "" || x.Rows == nil || *x.Rows != rows[x.Table] || x.Back.Verdict != "equal" {
					t.Errorf("%s without %s: %+v", to, gone, x)
				}
			}
			if after := entries(); !slices.Equal(before, after) {
				t.Errorf("%s without %s: %v, and then %v", to, gone, before, after)
			}
			if err := os.Rename(filepath.Join(dir, "aside"), filepath.Join(in, gone)); err != nil {
				t.Fatal(err)
			}
			writeFiles(t, in, cluster) // with other times
			if third, status := rescueInto(t, []string{in}, out, "--to", to, "--resume"); status != 0 {
				t.Errorf("%s, %s is back: status %d: %+v", to, gone, status, third.Tables)
			}
		}
	}
}

// TestRescueOfTornLogsBesideACopy: where one log of a tablet ends within an operation, the table is whole if the copy
// of another server has that, committed, and not if the copy ends before it; whichever of the two is read.
func TestRescueOfTornLogsBesideACopy(t *testing.T) {
	cluster, rows := fewTables(t, "d_wal")
	name := logOfWAL(t, cluster)
	whole := len(cluster[name])
	for _, torn := range []int{walOperation + 1, walOperation + 17, walOperation + 40, walOperation + 4000, walCommit,
		walCommit + 40, whole - 1} {
		for _, copied := range []int{walOperation, whole} {
			for _, zeros := range []int{0, 4096} {
				if testing.Short() && zeros > 0 {
					continue
				}
				files := maps.Clone(cluster)
				twin(func(map[string][]byte) {})(files)
				files[name] = append(slices.Clone(files[name][:torn]), make([]byte, zeros)...)
				twinned := strings.Replace(name, "tserver/", "twin/", 1)
				files[twinned] = files[twinned][:copied]
				if torn%2 == 0 { // so each of them is the first
					files[name], files[twinned] = files[twinned], files[name]
				}
				dir := t.TempDir()
				writeFiles(t, filepath.Join(dir, "in"), files)
				r, status := rescueOf(t, filepath.Join(dir, "out"), filepath.Join(dir, "in"))
				unknown := torn == walOperation+17 // how many operations the batch held
				if (status == 0) != (copied == whole) && !(unknown && status == 3) {
					t.Errorf("%d of %d bytes beside %d: status %d: %v", torn, whole, copied, status, r.Tables[0].Why)
				}
				if copied == whole && *r.Tables[0].Rows != rows["d_wal"] {
					t.Errorf("%d of %d bytes beside %d: %d rows", torn, whole, copied, *r.Tables[0].Rows)
				}
			}
		}
	}
}

// TestRescueBeforeUndecidedOperations: what nothing says was committed costs nothing at a moment before it.
func TestRescueBeforeUndecidedOperations(t *testing.T) {
	cluster, rows := fewTables(t, "d_wal")
	name := logOfWAL(t, cluster)
	const last = "7353330694892847105" // right after the last operation before it, as the generator wrote it
	for _, size := range []int{walOperation, walOperation + 4000, walCommit, walCommit + 40} {
		files := maps.Clone(cluster)
		files[name] = files[name][:size]
		dir := t.TempDir()
		writeFiles(t, filepath.Join(dir, "in"), files)
		for _, at := range []string{last, "7353330694892847104"} {
			r, status := rescueInto(t, []string{filepath.Join(dir, "in")}, filepath.Join(dir, at), "--at", at)
			if status != 0 || *r.Tables[0].Rows != 1619 || rows["d_wal"] != 1669 {
				t.Errorf("%d bytes, at %s: status %d: %+v", size, at, status, r.Tables)
			}
		}
	}
}

// TestRescueWithoutConsensusMetadata: no row is lost with the consensus metadata of a tablet, so that the rescue is
// whole; it warns that no server starts the tablet.
func TestRescueWithoutConsensusMetadata(t *testing.T) {
	cluster, rows := fewTables(t, "d_wal", "d_raw")
	name := logOfWAL(t, cluster)
	meta := "tserver/wal/consensus-meta/" + filepath.Base(filepath.Dir(name))
	for _, b := range [][]byte{cluster[meta][:40], nil} {
		if cluster[meta] = b; b == nil {
			delete(cluster, meta)
		}
		dir := t.TempDir()
		writeFiles(t, filepath.Join(dir, "in"), cluster)
		r, status := rescueOf(t, filepath.Join(dir, "out"), filepath.Join(dir, "in"))
		warned := slices.ContainsFunc(r.Findings, func(f rescuedFinding) bool {
			return f.Code == "kudu.cmeta.damaged" && f.Severity == "warning"
		})
		if status != 0 || !warned || len(r.Tables) != 2 ||
			*r.Tables[0].Rows+*r.Tables[1].Rows != rows["d_wal"]+rows["d_raw"] {
			t.Errorf("%d bytes: status %d: %+v", len(b), status, r)
		}
	}
}

// TestCatchUpIsAdvisedForNewerSources: where a finished table of a lake is not what its source has now, a resumed run
// advises to bring it up to date only if the source is newer; otherwise it says what the source lacks.
func TestCatchUpIsAdvisedForNewerSources(t *testing.T) {
	cluster, _ := fewTables(t, "d_wal", "d_raw")
	log := logOfWAL(t, cluster)
	const advice = "brings it up to date"
	whole := len(cluster[log])
	for _, verb := range [][]string{{"rescue", "--to", "iceberg"}, {"migrate"}, {"convert", "--all", "--to", "delta"}} {
		for _, x := range []struct {
			name       string
			then, now  int
			forget     bool
			says, lack string
		}{
			{"newer", walOperation, whole, false, advice, "less"},
			{"older", whole, walOperation, false, "the source has less now than that run has read", advice},
			{"gone", whole, 0, false, "; the source ", advice},
			{"not known", whole, walOperation, true, "--dry-run says what would change", advice},
		} {
			dir := t.TempDir()
			in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
			write := func(size int) {
				writeFiles(t, in, cluster)
				writeFiles(t, in, map[string][]byte{log: cluster[log][:size]})
			}
			write(x.then)
			args := append(slices.Clone(verb), in, "-o", out)
			printedBy(args...)
			if x.forget {
				withoutMoments(t, filepath.Join(out, ".stoa-convert.json"))
			}
			before := filesBelow(t, out)
			if write(x.now); x.now == 0 {
				os.RemoveAll(filepath.Join(in, filepath.Dir(log)))
			}
			status, text := printedBy(append(args, "--resume")...)
			text = strings.Join(strings.Fields(text), " ")
			if status == 0 || !strings.Contains(text, x.says) || strings.Contains(text, x.lack) ||
				!maps.EqualFunc(before, filesBelow(t, out), bytes.Equal) {
				t.Errorf("%v, %s: status %d: %s", verb, x.name, status, text)
			}
		}
	}
}

// TestReportOfKeptTables: the moments, and the operations that only logs had, of a table that is kept are those of what
// is kept, whatever the sources have now; those of the others are those of the sources.
func TestReportOfKeptTables(t *testing.T) {
	cluster, _ := fewTables(t, "d_wal", "d_raw")
	log := logOfWAL(t, cluster)
	for _, to := range []string{"parquet", "iceberg"} {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		writeFiles(t, in, cluster)
		first, _ := rescueInto(t, []string{in}, out, "--to", to)
		writeFiles(t, in, map[string][]byte{log: cluster[log][:walOperation]})
		older, _ := rescueInto(t, []string{in}, filepath.Join(dir, "other"), "--to", to)
		second, status := rescueInto(t, []string{in}, out, "--to", to, "--resume")
		if status != 3 || len(second.Tables) != 2 {
			t.Fatalf("%s: status %d, %d tables", to, status, len(second.Tables))
		}
		for i, x := range second.Tables {
			was := first.Tables[i]
			if x.Table != was.Table || x.Last != was.Last || x.Replayed != was.Replayed {
				t.Errorf("%s: %s: %+v, and then %+v", to, was.Table, was, x)
			}
			if x.Table == "d_wal" && (x.Last == older.Tables[i].Last || x.Replayed == older.Tables[i].Replayed) {
				t.Errorf("%s: an older source has the same moments: %+v", to, older.Tables[i])
			}
		}
	}
}

// TestRescueWithoutDirectoryInstances: no row is lost with the files that number the data directories of a server, nor
// if they are damaged, so that the rescue is whole; it warns that no server starts on the directories.
func TestRescueWithoutDirectoryInstances(t *testing.T) {
	cluster, rows := fewTables(t, "d_wal", "d_raw")
	const name = "tserver/data/data/block_manager_instance"
	for _, b := range [][]byte{cluster[name][:20], nil} {
		if cluster[name] = b; b == nil {
			delete(cluster, name)
		}
		dir := t.TempDir()
		writeFiles(t, filepath.Join(dir, "in"), cluster)
		r, status := rescueOf(t, filepath.Join(dir, "out"), filepath.Join(dir, "in"))
		warned := slices.ContainsFunc(r.Findings, func(f rescuedFinding) bool {
			return f.Code == "kudu.datadir.damaged" && f.Severity == "warning"
		})
		if status != 0 || !warned || len(r.Tables) != 2 ||
			*r.Tables[0].Rows+*r.Tables[1].Rows != rows["d_wal"]+rows["d_raw"] {
			t.Errorf("%d bytes: status %d: %+v", len(b), status, r)
		}
		lost := maps.Clone(cluster) // what lies in a directory is missed nevertheless
		maps.DeleteFunc(lost, func(name string, _ []byte) bool { return strings.HasPrefix(name, "tserver/data/") })
		writeFiles(t, filepath.Join(dir, "lost"), lost)
		if _, status := rescueOf(t, filepath.Join(dir, "no"), filepath.Join(dir, "lost")); status != 3 {
			t.Errorf("%d bytes, no blocks: status %d", len(b), status)
		}
	}
}
