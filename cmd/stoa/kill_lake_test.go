//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/cli"
	"stoa/internal/effort"
)

// recordsIn returns the number of records of an unfinished table.
func recordsIn(dir string) int {
	names, _ := filepath.Glob(filepath.Join(dir, "_stoa", "*.record"))
	return len(names)
}

// lakeIDs returns the sorted values of the column id.
func lakeIDs(t *testing.T, place string) (ids []int) {
	t.Helper()
	for line := range strings.Lines(must(t, "cat", place, "-c", "id", "-f", "csv")) {
		if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
			ids = append(ids, n)
		}
	}
	slices.Sort(ids)
	return ids
}

// oneTablet writes the directories of a Kudu server with a table of this many rows in one tablet.
func oneTablet(t *testing.T, rows int) {
	t.Helper()
	var text bytes.Buffer
	text.WriteString("id,v\n")
	for i := range rows {
		fmt.Fprintf(&text, "%d,%d\n", i, i/1000)
	}
	if err := os.WriteFile("in.csv", text.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	must(t, "convert", "in.csv", "-o", "fs", "--to", "kudu-fs", "--opt", "key=id", "--opt", "table=t", "-q")
}

// TestKilledLakes kills conversions of one large table into Iceberg and Delta repeatedly: no run starts over, nothing
// is visible before the end, and then every row is there once, and nothing else. The table's tablets are not divided:
// what is within one is resumed by its key.
func TestKilledLakes(t *testing.T) {
	kills, rows := 6, 500_000
	if testing.Short() {
		kills, rows = 2, 60_000
	}
	s3, bucket := emptyBucket(t)
	asS3(t, s3)
	t.Chdir(t.TempDir())
	unsortedTablets(t, rows)
	want := make([]int, rows)
	for i := range want {
		want[i] = i
	}
	for i, c := range []struct {
		to, out, unfinished string
		opts                []string
	}{
		{"iceberg", "ice", "ice.unfinished", nil},
		{"delta", "delta", "delta.unfinished", nil},
		{"iceberg,delta", "both", "both.unfinished", nil},
		{"iceberg", "s3://bucket/ice", filepath.Join(bucket, "ice"), []string{"--partition-by", "bucket(3, id)"}},
		{"delta", "s3://bucket/delta", filepath.Join(bucket, "delta"), nil},
	} {
		args := append([]string{"convert", "fs/tserver", "--to", c.to, "-o", c.out, "--opt", "file-size=100KB", "-q"},
			c.opts...)
		killed, seen := 0, 0
		r := rand.New(rand.NewPCG(25, uint64(i)))
		for killed < kills {
			cmd, wait := asCommand(t, args...)
			args = append(slices.DeleteFunc(args, func(a string) bool { return a == "--resume" }), "--resume")
			more := recordsIn(c.unfinished) + 1
			ended := make(chan bool, 1)
			go func() {
				ok := false
				defer func() { ended <- ok }() // also where wait ends the test
				_, ok = wait()
			}()
			for begun := time.Now(); recordsIn(c.unfinished) < more && time.Since(begun) < time.Minute &&
				len(ended) == 0; {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Duration(r.IntN(5)) * time.Millisecond)
			cmd.Process.Kill()
			if <-ended {
				break
			}
			killed++
			if n := recordsIn(c.unfinished); n < seen {
				t.Errorf("%s, kill %d: %d records, %d before", c.out, killed, n, seen)
			} else {
				seen = n
			}
			var errs bytes.Buffer
			if st := run(context.Background(), []string{"count", c.out, "-q"}, nil, &bytes.Buffer{}, &errs); st == 0 {
				t.Errorf("%s: after a kill it can be read", c.out)
			}
		}
		if killed < 2 || seen < 2 {
			t.Errorf("%s: %d kills, %d records: the test shows little", c.out, killed, seen)
		}
		if killed == kills {
			plain := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--resume" })
			var errs bytes.Buffer
			if st := run(context.Background(), plain, nil, &bytes.Buffer{}, &errs); st != cli.StatusUse {
				t.Errorf("%s, without --resume: status %d, want %d: %s", c.out, st, cli.StatusUse, &errs)
			}
			must(t, args...)
		}
		t.Logf("%s: %d kills, %d records", c.out, killed, seen)
		if got := lakeIDs(t, c.out); !slices.Equal(got, want) {
			t.Errorf("%s: %d rows, want each of %d once", c.out, len(got), rows)
		}
		must(t, "verify", c.out, "--deep")
		if left, _ := filepath.Glob(c.unfinished + "/_stoa*"); len(left) > 0 {
			t.Errorf("%s: %v is left", c.out, left)
		}
	}
}

// TestChangedLakeFiles: whatever happens to any one file of a run that was killed, data or record, the next run notices
// it, and each row is there once at the end. So it is with other times on all files, with other flags, and with a
// directory of others.
func TestChangedLakeFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	rows := 400_000
	oneTablet(t, rows)
	args := []string{"convert", "fs/tserver", "--to", "iceberg", "-o", "out", "--opt", "file-size=50KB", "--opt",
		"row-group-rows=2000", "--opt", "compression=none", "--opt", "dictionary=false", "-q"}
	const work = "out.unfinished"
	killed := func(records int) {
		t.Helper()
		for range 10 {
			if err := errors.Join(os.RemoveAll(work), os.RemoveAll("out")); err != nil {
				t.Fatal(err)
			}
			cmd, wait := asCommand(t, args...)
			for begun := time.Now(); recordsIn(work) < records && time.Since(begun) < time.Minute; {
				time.Sleep(time.Millisecond)
			}
			cmd.Process.Kill()
			wait()
			if recordsIn(work) >= records {
				return
			}
		}
		t.Fatalf("no run had %d records when it was killed", records)
	}
	resumed := func(what string) {
		t.Helper()
		must(t, append(args, "--resume")...)
		if got := lakeIDs(t, "out"); len(got) != rows || len(slices.Compact(got)) != rows {
			t.Errorf("%s: %d rows, want %d", what, len(got), rows)
		}
	}
	if err := os.MkdirAll(work+"/sub", 0o777); err != nil {
		t.Fatal(err)
	}
	if st := run(t.Context(), args, nil, &bytes.Buffer{}, &bytes.Buffer{}); st == 0 {
		t.Error("a directory of others was taken for that of an earlier run")
	}
	killed(4)
	kept := "kept"
	if err := os.Rename(work, kept); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(kept + "/*/*")
	changes := map[string]func(string) error{"removed": os.Remove,
		"cut":     func(name string) error { return os.Truncate(name, 100) },
		"touched": func(name string) error { return os.Chtimes(name, time.Unix(1, 0), time.Unix(1, 0)) }}
	tried := 0
	for how, change := range changes {
		for _, name := range files {
			rel, _ := filepath.Rel(kept, name)
			if record := strings.HasPrefix(rel, "_stoa"); record && how == "touched" || testing.Short() && tried > 3 {
				continue
			}
			tried++
			out, err := exec.Command("cp", "-a", kept, work).CombinedOutput() // -a keeps the times
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if err := errors.Join(os.RemoveAll("out"), change(filepath.Join(work, rel))); err != nil {
				t.Fatal(err)
			}
			resumed(rel + " " + how)
		}
	}
	if out, err := exec.Command("cp", "-r", kept, work).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.RemoveAll("out"); err != nil {
		t.Fatal(err)
	}
	resumed("a copy with other times")
	killed(2)
	args[slices.Index(args, "row-group-rows=2000")] = "row-group-rows=3000"
	resumed("other flags")
	t.Logf("%d changes of %d files", tried, len(files))
}

// TestResumedTwiceAtAddress: two runs go on with one table at an address. One makes it; the other, wherever it stands
// then, fails and takes nothing from it. Objects of others at the address stay.
func TestResumedTwiceAtAddress(t *testing.T) {
	s3, bucket := emptyBucket(t)
	asS3(t, s3)
	t.Chdir(t.TempDir())
	const rows = 400_000
	oneTablet(t, rows)
	stopped := 0
	for i, to := range []string{"iceberg", "delta", "iceberg", "delta", "iceberg", "delta"} {
		name := fmt.Sprint("t", i)
		dir := filepath.Join(bucket, name)
		args := []string{"convert", "fs/tserver", "--to", to, "-o", "s3://bucket/" + name, "--opt", "file-size=50KB",
			"--opt", "row-group-rows=2000", "--opt", "compression=none", "--opt", "dictionary=false", "-q"}
		until := func(cmd *exec.Cmd, records int, sig syscall.Signal) {
			for begun := time.Now(); recordsIn(dir) < records && time.Since(begun) < 5*time.Second; {
				time.Sleep(time.Millisecond)
			}
			_ = cmd.Process.Signal(sig) // it may have ended
		}
		cmd, _ := asCommand(t, args...)
		until(cmd, 2, syscall.SIGKILL)
		cmd.Wait()
		if err := os.WriteFile(filepath.Join(dir, "README.txt"), []byte("others\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--resume")
		slow := exec.Command(os.Args[0], args...)
		slow.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
		if err := slow.Start(); err != nil {
			t.Fatal(err)
		}
		until(slow, []int{2, 3, 4}[i/2], syscall.SIGSTOP)
		var errs bytes.Buffer
		won := run(t.Context(), args, nil, &bytes.Buffer{}, &errs) == 0
		_ = slow.Process.Signal(syscall.SIGCONT)
		if lost := slow.Wait() != nil; lost && won {
			stopped++
		} else if !won && lost {
			t.Fatalf("%s: no run has made the table: %s", name, &errs)
		}
		if got := lakeIDs(t, "s3://bucket/"+name); len(got) != rows || len(slices.Compact(got)) != rows {
			t.Errorf("%s: %d rows, want %d", name, len(got), rows)
		}
		must(t, "verify", "s3://bucket/"+name, "--deep")
		if _, err := os.Stat(filepath.Join(dir, "README.txt")); err != nil {
			t.Errorf("%s: what was another's is gone: %v", name, err)
		}
		if n := recordsIn(dir); n > 0 {
			t.Errorf("%s: %d records are left", name, n)
		}
	}
	if stopped < 2 {
		t.Errorf("only %d runs were overtaken: the test shows little", stopped)
	}
	t.Logf("%d runs were overtaken", stopped)
}

// lostAnswer is a server that carries out its n-th write; the answer to it is lost, and so are the next few requests.
type lostAnswer struct {
	http.Handler
	n, more    int64 // more: requests that are lost
	seen, down atomic.Int64
}

func (l *lostAnswer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.down.Add(-1) >= 0 {
		panic(http.ErrAbortHandler)
	}
	if (r.Method == http.MethodPut || r.Method == http.MethodPost) && l.seen.Add(1) == l.n {
		l.Handler.ServeHTTP(httptest.NewRecorder(), r)
		l.down.Store(l.more)
		panic(http.ErrAbortHandler)
	}
	l.Handler.ServeHTTP(w, r)
}

// TestLostAnswersToLakes: whichever answer of a store is lost while a large table is written, and whether or not the
// store answers again while the run ends, the table is there all the same, or another run goes on. No file is removed
// that a table names.
func TestLostAnswersToLakes(t *testing.T) {
	s3, _ := emptyBucket(t)
	t.Chdir(t.TempDir())
	oneTablet(t, lostRows)
	for _, to := range []string{"iceberg", "delta", "iceberg,delta"} {
		for _, more := range []int64{17, 100} { // 15 more are lost before the client gives up
			if testing.Short() && (to != "iceberg" || more > 17) {
				continue
			}
			step := int64(effort.Step(2, 1))
			n, failed := 1-step, 0
			for seen := int64(0); seen >= n; {
				n += step
				lost := &lostAnswer{Handler: s3, n: n, more: more}
				place := fmt.Sprintf("s3://bucket/%s-%d-%d", strings.ReplaceAll(to, ",", "-"), n, more)
				if !lostAnswerTo(t, lost, to, place) {
					failed++
				}
				seen = lost.seen.Load()
			}
			if t.Logf("%s, %d lost: %d writes, %d runs failed", to, more, (n-1)/step, failed); failed < 5 {
				t.Errorf("%s, %d lost: %d runs failed: the test shows little", to, more, failed)
			}
		}
	}
}

const lostRows = 200_000

// lostAnswerTo writes a table, and reports whether the run ended well.
func lostAnswerTo(t *testing.T, lost *lostAnswer, to, place string) bool {
	asS3(t, lost)
	args := []string{"convert", "fs/tserver", "--to", to, "-o", place, "--opt", "file-size=20KB", "--opt",
		"row-group-rows=2000", "--opt", "compression=none", "--opt", "dictionary=false", "-q"}
	fine := run(t.Context(), args, nil, io.Discard, io.Discard) == 0
	asS3(t, lost.Handler)
	if !fine && run(t.Context(), []string{"count", place, "-q"}, nil, io.Discard, io.Discard) != 0 {
		must(t, append(args, "--resume")...)
	}
	kinds := strings.Split(to, ",")
	if !fine { // the first of two catalogues may be all that was made
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		if got := strings.TrimSpace(must(t, "count", place, "--from", kind)); got != fmt.Sprint(lostRows) {
			t.Errorf("%s: %s rows of %s", place, got, kind)
		}
		must(t, "verify", place, "--from", kind, "--deep")
	}
	return fine
}

// TestKilledWithinTables: a migration that was killed within its tables goes on within them, and reports the dates of
// all rows, those of the earlier run included.
func TestKilledWithinTables(t *testing.T) {
	t.Chdir(t.TempDir())
	r := rand.New(rand.NewPCG(25, 11))
	const rows = 120_000
	var text bytes.Buffer
	text.WriteString("id,day\n")
	for i := range rows { // every tenth day is one that Java's calendar counts otherwise
		day := "2020-01-01"
		if i%10 == 0 {
			day = "1500-01-01"
		}
		fmt.Fprintf(&text, "%d,%s,%016x\n", i, day, r.Uint64())
	}
	head := []byte("id,day,text\n")
	body := bytes.TrimPrefix(text.Bytes(), []byte("id,day\n"))
	if err := os.WriteFile("in.csv", append(head, body...), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("src", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		must(t, "convert", "in.csv", "-o", "src/"+name+".parquet", "--opt", "row-group-rows=5000")
	}
	args := []string{"migrate", "src", "-o", "out", "--opt", "file-size=50KB", "-q"}
	before := 0
	for range 10 { // a run may end before it is killed
		if err := os.RemoveAll("out"); err != nil {
			t.Fatal(err)
		}
		cmd, wait := asCommand(t, args...)
		for begun := time.Now(); recordsIn("out/a.unfinished") < 3 && time.Since(begun) < time.Minute; {
			time.Sleep(time.Millisecond)
		}
		cmd.Process.Kill()
		wait()
		if before = recordsIn("out/a.unfinished"); before >= 3 {
			break
		}
	}
	must(t, append(args, "--resume")...)
	b, err := os.ReadFile("out/report.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Tables []struct {
			Rows  int64
			Dates []struct {
				Column string
				Values int64
				Julian int64 `json:"before_1582_10_15"`
			}
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil || len(doc.Tables) != 2 || before < 3 {
		t.Fatalf("%v: %d tables, %d records", err, len(doc.Tables), before)
	}
	for _, table := range doc.Tables {
		if len(table.Dates) != 1 || table.Rows != rows || table.Dates[0].Values != rows ||
			table.Dates[0].Julian != rows/10 {
			t.Errorf("report: %+v", table)
		}
	}
	for _, name := range []string{"out/a", "out/b"} {
		if got := lakeIDs(t, name); len(got) != rows || len(slices.Compact(got)) != rows {
			t.Errorf("%s: %d rows", name, len(got))
		}
	}
}
