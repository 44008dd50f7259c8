package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/internal/effort"
)

// the log of the tablet of d_wal in the dead cluster: its last operation, with the last 125 changes, begins at 133,905,
// and its commit at 138,088
const walOperation, walCommit = 133905, 138088

func logOfWAL(t *testing.T, cluster map[string][]byte) (name string) {
	t.Helper()
	for name, b := range cluster {
		if strings.HasPrefix(name, "tserver/wal/wals/") && len(b) == 138167 {
			return name
		}
	}
	t.Fatal("the log of d_wal is not there")
	return ""
}

// printedBy runs a command, and returns its status and all that it printed.
func printedBy(args ...string) (status int, text string) {
	var out bytes.Buffer
	status = run(context.Background(), args, strings.NewReader(""), &out, &out)
	return status, out.String()
}

// TestRescueOfUndecidedLogs: a table whose log ends with an operation that nothing commits, or within one, is not
// whole, and the report says so in all its forms; another copy that has the commit makes it whole again. A log that
// ends before the operation does not know of it.
func TestRescueOfUndecidedLogs(t *testing.T) {
	cluster, rows := deadCluster(t)
	name := logOfWAL(t, cluster)
	for _, x := range []struct {
		size int
		why  string
	}{{walOperation, ""}, {walOperation + 4000, "within a batch"}, {walCommit, "(125 row operations)"},
		{walCommit + 40, "(125 row operations)"}} {
		for _, copied := range []bool{false, true} {
			dir := t.TempDir()
			files := maps.Clone(cluster)
			if copied {
				twin(func(map[string][]byte) {})(files)
			}
			files[name] = files[name][:x.size]
			writeFiles(t, filepath.Join(dir, "in"), files)
			out := filepath.Join(dir, "out")
			r, status := rescueOf(t, out, filepath.Join(dir, "in"))
			whole := x.why == "" || copied
			if (status == 0) != whole {
				t.Errorf("%d bytes, copied %t: status %d", x.size, copied, status)
			}
			for _, tb := range r.Tables {
				own := whole || tb.Table != "d_wal"
				if tb.Whole != own || tb.Exact != own || *tb.Rows != rows[tb.Table] && (own && x.why != "") {
					t.Errorf("%d bytes, copied %t: %s has %d rows, whole %t, exact %t", x.size, copied, tb.Table,
						*tb.Rows, tb.Whole, tb.Exact)
				}
			}
			for _, form := range []string{"report.txt", "report.json", "report.html"} {
				text, _ := os.ReadFile(filepath.Join(out, form))
				folded := strings.Join(strings.Fields(string(text)), " ")
				if x.why != "" && strings.Contains(folded, x.why) == copied {
					t.Errorf("%d bytes, copied %t: %s says %q: %t", x.size, copied, form, x.why, copied)
				}
			}
			census, text := printedBy("census", filepath.Join(dir, "in"))
			if census != 0 || !copied && strings.Contains(text, "may not be committed") != (x.why != "") {
				t.Errorf("%d bytes: census: status %d: %s", x.size, census, text)
			}
		}
	}
}

// TestResumedRescueNeverHasLess: whatever dies between two runs, what the first has written is there after the second,
// which says that it does not agree with the sources; when these are back, all is whole.
func TestResumedRescueNeverHasLess(t *testing.T) {
	cluster, rows := deadCluster(t)
	maps.DeleteFunc(cluster, func(name string, _ []byte) bool { return strings.HasPrefix(name, "master/") })
	for _, gone := range []string{"tserver/data/", "tserver/wal/", "tserver/", logOfWAL(t, cluster)} {
		for _, flags := range [][]string{nil, {"--file-size", "20kB"}} {
			if flags != nil && gone != "tserver/data/" && !effort.All() {
				continue
			}
			dir := t.TempDir()
			in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
			writeFiles(t, filepath.Join(in, "other"), map[string][]byte{"a.csv": []byte("x\n1\n2\n")})
			writeFiles(t, in, cluster)
			first, status := rescueInto(t, []string{in}, out, flags...)
			if status != 0 || len(first.Tables) != len(rows)+1 {
				t.Fatalf("status %d, %d tables", status, len(first.Tables))
			}
			aside := filepath.Join(dir, "aside")
			if err := os.Rename(filepath.Join(in, gone), aside); err != nil {
				t.Fatal(err)
			}
			second, status := rescueInto(t, []string{in}, out, append(flags, "--resume")...)
			if status != 3 {
				t.Errorf("without %s: status %d", gone, status)
			}
			told := 0
			for _, was := range first.Tables {
				i := slices.IndexFunc(second.Tables, func(x rescuedOne) bool { return x.Output == was.Output })
				if i < 0 || *second.Tables[i].Rows < *was.Rows {
					t.Errorf("without %s, %v: %s had %d rows, and now fewer", gone, flags, was.Output, *was.Rows)
				} else if !second.Tables[i].Whole {
					told++
				}
			}
			if told == 0 {
				t.Errorf("without %s: every table is called whole", gone)
			}
			if err := os.Rename(aside, filepath.Join(in, gone)); err != nil {
				t.Fatal(err)
			}
			if _, status := rescueInto(t, []string{in}, out, append(flags, "--resume")...); status != 0 {
				t.Errorf("%s is back: status %d", gone, status)
			}
		}
	}
}

// TestTablesThatVanish: a table that an earlier run has written and whose sources are gone is reported, by every verb
// that can be resumed, with the status of damage.
func TestTablesThatVanish(t *testing.T) {
	for _, verb := range [][]string{{"rescue"}, {"convert", "--all"}, {"migrate"}} {
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		writeFiles(t, in, map[string][]byte{"a/one.csv": []byte("x\n1\n2\n"), "b/two.csv": []byte("x\n3\n")})
		args := append(slices.Clone(verb), in, "-o", out)
		if status, text := printedBy(args...); status != 0 {
			t.Fatalf("%v: %d: %s", verb, status, text)
		}
		if err := os.RemoveAll(filepath.Join(in, "b")); err != nil {
			t.Fatal(err)
		}
		status, text := printedBy(append(args, "--resume")...)
		if folded := strings.Join(strings.Fields(text), " "); status != 3 || !strings.Contains(folded, "two") ||
			!strings.Contains(folded, "its sources are not there any more") {
			t.Errorf("%v: status %d: %s", verb, status, text)
		}
	}
}

// TestSupersededTables: a table that is read under another name, because its superblock is gone, has two files of the
// same rows, and the report says so.
func TestSupersededTables(t *testing.T) {
	cluster, _ := deadCluster(t)
	maps.DeleteFunc(cluster, func(name string, _ []byte) bool { return strings.HasPrefix(name, "master/") })
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	writeFiles(t, in, cluster)
	if _, status := rescueOf(t, out, in); status != 0 {
		t.Fatal(status)
	}
	tablet := filepath.Base(filepath.Dir(logOfWAL(t, cluster)))
	if err := os.Remove(filepath.Join(in, "tserver", "wal", "tablet-meta", tablet)); err != nil {
		t.Fatal(err)
	}
	r, status := rescueInto(t, []string{in}, out, "--resume")
	told := false
	for _, tb := range r.Tables {
		told = told || tb.Table == "d_wal" && !tb.Whole && strings.Contains(strings.Join(tb.Why, " "), tablet)
	}
	if status != 3 || !told {
		t.Errorf("status %d, %+v", status, r.Tables)
	}
}

// TestRescueInPiecesOfDamage: rows that can be read are written with --file-size as without it, whatever is lost.
func TestRescueInPiecesOfDamage(t *testing.T) {
	cluster, _ := deadCluster(t)
	for keep := range 4 { // one in so many blocks, or none
		n := 0
		files := maps.Clone(cluster)
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if strings.HasPrefix(name, "tserver/data/data/") && len(filepath.Base(name)) == 16 {
				if n++; keep == 0 || n%(keep*7) != 0 {
					delete(files, name)
				}
			}
		}
		dir := t.TempDir()
		writeFiles(t, filepath.Join(dir, "in"), files)
		one, _ := rescueOf(t, filepath.Join(dir, "one"), filepath.Join(dir, "in"))
		many, _ := rescueInto(t, []string{filepath.Join(dir, "in")}, filepath.Join(dir, "many"), "--file-size", "8kB")
		for i, tb := range one.Tables {
			if tb.Table == "?" || tb.Output == "" {
				continue
			}
			other := many.Tables[i]
			if other.Table != tb.Table || *other.Rows != *tb.Rows || other.Back.Checksum != tb.Back.Checksum {
				t.Errorf("1 in %d blocks: %s: %d rows in one file, %d in several", keep*7, tb.Table, *tb.Rows,
					*other.Rows)
			}
		}
	}
}

// TestSuperblockGoneBesideMaster: no verb says that the server of a tablet has to be given if it is, and the tablet is
// lost, not missing.
func TestSuperblockGoneBesideMaster(t *testing.T) {
	cluster, rows := deadCluster(t)
	tablet := filepath.Base(filepath.Dir(logOfWAL(t, cluster)))
	delete(cluster, "tserver/wal/tablet-meta/"+tablet)
	dir := t.TempDir()
	writeFiles(t, dir, cluster)
	for _, args := range [][]string{{"ls", "-v", dir}, {"count", dir + "#d_wal"}, {"history", dir + "#d_wal"},
		{"verify", dir}, {"recover", dir + "#d_wal", "-o", filepath.Join(t.TempDir(), "x.parquet")},
		{"census", dir}} {
		status, text := printedBy(args...)
		if status != 3 || strings.Contains(text, "must be given") || !strings.Contains(text, tablet) {
			t.Errorf("%v: status %d: %s", args[0], status, text)
		}
		word := map[string]string{"ls": "state LOST", "census": "    lost "}[args[0]]
		if !strings.Contains(text, word) || strings.Contains(text, "MISSING") {
			t.Errorf("%v does not say that the tablet is lost: %s", args[0], text)
		}
	}
	if _, text := printedBy("census", dir); !strings.Contains(text, "part  complete  4 tablets\n") || len(rows) != 24 {
		t.Errorf("ranges that none covers are no tablets: %s", text)
	}
}

// TestConsensusMetadataGone: verify reports a tablet without consensus metadata, and --in-kind does not write what no
// server starts.
func TestConsensusMetadataGone(t *testing.T) {
	cluster, _ := deadCluster(t)
	tablet := filepath.Base(filepath.Dir(logOfWAL(t, cluster)))
	delete(cluster, "tserver/wal/consensus-meta/"+tablet)
	dir := t.TempDir()
	writeFiles(t, filepath.Join(dir, "in"), cluster)
	if status, text := printedBy("verify", filepath.Join(dir, "in")); status != 3 || !strings.Contains(text, tablet) {
		t.Errorf("verify: status %d: %s", status, text)
	}
	out := filepath.Join(dir, "out")
	status, text := printedBy("rescue", "--in-kind", filepath.Join(dir, "in"), "-o", out)
	if status != 3 || !strings.Contains(text, "not mended: "+tablet) {
		t.Errorf("in-kind: status %d: %s", status, text)
	}
	if found, _ := filepath.Glob(filepath.Join(out, "*", "tablet-meta", tablet)); len(found) > 0 {
		t.Errorf("the tablet was written: %v", found)
	}
}

// TestInstanceGone: --in-kind writes a server of which one of the files is gone that say which server it is.
func TestInstanceGone(t *testing.T) {
	cluster, _ := deadCluster(t)
	for _, name := range []string{"tserver/wal/instance", "tserver/data/instance"} {
		files := maps.Clone(cluster)
		delete(files, name)
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		writeFiles(t, in, files)
		status, text := printedBy("rescue", "--in-kind", in, "-o", out)
		written, _ := filepath.Glob(filepath.Join(out, "*", "instance"))
		if status != 0 || len(written) != 1 {
			t.Errorf("without %s: status %d, %v: %s", name, status, written, text)
		}
		if status := run(context.Background(), []string{"verify", out}, strings.NewReader(""), io.Discard,
			io.Discard); status != 0 {
			t.Errorf("without %s: what was written has status %d", name, status)
		}
	}
}

// TestRescueOfFlushedOperationsWithoutCommits: an operation that was flushed was applied, whether or not the log still
// has its commit: no verb says that it was not. What is told is that the log has lost its end.
func TestRescueOfFlushedOperationsWithoutCommits(t *testing.T) {
	cluster, _ := fewTables(t, "d_wal")
	name := logOfWAL(t, cluster)
	const before = 133793 // where the commit of the last operation that was flushed begins
	for _, size := range []int{before, before + 40, walOperation} {
		files := maps.Clone(cluster)
		files[name] = files[name][:size]
		dir := t.TempDir()
		writeFiles(t, filepath.Join(dir, "in"), files)
		r, status := rescueOf(t, filepath.Join(dir, "out"), filepath.Join(dir, "in"))
		text, _ := os.ReadFile(filepath.Join(dir, "out", "report.txt"))
		cut := size < walOperation
		if (status == 3) != cut || *r.Tables[0].Rows != 1619 || strings.Contains(string(text), "not applied") ||
			strings.Contains(string(text), "kudu.wal.short") != cut {
			t.Errorf("%d bytes: status %d, %d rows: %s", size, status, *r.Tables[0].Rows, text)
		}
		for _, verb := range []string{"verify", "count", "ls", "census"} {
			if _, text := printedBy(verb, filepath.Join(dir, "in")); strings.Contains(text, "not applied") {
				t.Errorf("%d bytes: %s: %s", size, verb, text)
			}
		}
	}
}
