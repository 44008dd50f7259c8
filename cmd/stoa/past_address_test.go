//go:build unix

package main

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"stoa/store/remote/remotetest"
)

// TestCatchUpAtAddress changes a table of CarbonData, and a table of a lake in a bucket catches up with it: it has the
// rows, and each older snapshot those of its time, although requests fail and runs are killed at any of them.
func TestCatchUpAtAddress(t *testing.T) {
	for i, to := range []string{"iceberg", "delta", "iceberg,delta"} {
		t.Run(to, func(t *testing.T) { catchUpAtAddress(t, to, uint64(i)) })
	}
}

func catchUpAtAddress(t *testing.T, to string, seed uint64) {
	const lake = "s3://bucket/ware house/lake"
	l := newLife(t, 10+seed)
	s3, dir := emptyBucket(t)
	asS3(t, s3)
	do(t, "convert", lifeTable, "--to", to, "-o", lake, "-q")
	k := &killer{S3: s3}
	faults := remotetest.NewFaults(0.05, seed)
	steps := 3
	if !testing.Short() {
		steps = 10
	}
	kinds := strings.Split(to, ",")
	past := []map[int]string{maps.Clone(l.rows)}
	requests := int64(60)
	for range steps {
		old := maps.Clone(l.rows)
		for maps.Equal(old, l.rows) {
			l.change()
		}
		if l.r.IntN(2) == 0 {
			k.run(t, 1+l.r.Int64N(requests), l.r.IntN(2) == 0, "convert", "--catch-up", lifeTable, "-o", lake, "-q")
			asS3(t, s3)
			for _, kind := range kinds {
				if got := lakeRows(t, lake, "--from", kind); !maps.Equal(got, old) && !maps.Equal(got, l.rows) {
					t.Errorf("%s after a kill: got %v, want %v or %v", kind, got, old, l.rows)
				}
			}
		}
		asS3(t, faults.On(s3))
		do(t, "convert", "--catch-up", lifeTable, "-o", lake, "-q")
		asS3(t, s3)
		past = append(past, maps.Clone(l.rows))
		for _, kind := range kinds {
			l.expect(l.rows, lake, "--from", kind)
		}
		l.expect(l.rows, lake)
	}
	requests = k.run(t, 0, false, "convert", "--catch-up", lifeTable, "-o", lake, "-q")
	if requests == 0 || len(kinds) == 1 && s3.Uploads() > 0 {
		t.Errorf("got %d requests and %d uploads", requests, s3.Uploads())
	}
	t.Chdir(path.Join(dir, "ware house"))
	ids := snapshotsOf(t)
	if len(ids) != len(past) {
		t.Fatalf("got %d snapshots, want %d", len(ids), len(past))
	}
	for i, at := range ids {
		l.expect(past[i], lake, "--from", kinds[len(kinds)-1], "--at", at)
	}
	must(t, "clean", lake, "--older-than", "1ns", "-q") // what the killed runs have left
	if got := said("s3://", "verify", lake); !strings.Contains(got, "healthy") || !strings.HasSuffix(got, "status: 0") {
		t.Errorf("got %s", got)
	}
}

// saidApart runs the command as a process of its own, and returns what it prints.
func saidApart(args ...string) string {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		return err.Error()
	}
	return string(out)
}

// TestCatchUpTogether: of several runs that catch up at once with different sources, the table has the rows of one
// that succeeded, and those that came late are told so.
func TestCatchUpTogether(t *testing.T) {
	t.Chdir(t.TempDir())
	text := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "{\"id\": %d, \"s\": \"row %d\"}\n", i, i)
		}
		return b.String()
	}
	s3, _ := emptyBucket(t)
	asS3(t, s3)
	const writers = 4
	write(t, "start.jsonl", text(3))
	for i := range writers {
		write(t, fmt.Sprintf("rows%d.jsonl", i), text(10+i))
	}
	for _, to := range []string{"iceberg", "delta"} {
		lake := "s3://bucket/" + to
		do(t, "convert", "start.jsonl", "--to", to, "-o", lake, "-q")
		for round := range 3 {
			said, wait := make([]string, writers), sync.WaitGroup{}
			for i := range writers {
				wait.Go(func() {
					said[i] = saidApart("convert", "--catch-up", fmt.Sprintf("rows%d.jsonl", i), "-o", lake, "-q")
				})
			}
			wait.Wait()
			rows, fine := len(lakeRows(t, lake)), 0
			for i, text := range said {
				switch {
				case text == "":
					fine++
				case !strings.Contains(text, "another writer has changed the table") &&
					!strings.Contains(text, "changed while it was read"):
					t.Errorf("%s, round %d, run %d: %s", to, round, i, text)
				}
			}
			if fine == 0 || rows < 10 || rows >= 10+writers || said[rows-10] != "" {
				t.Errorf("%s, round %d: %d runs succeeded, and there are %d rows: %q", to, round, fine, rows, said)
			}
			do(t, "convert", "--catch-up", "start.jsonl", "-o", lake, "-q")
		}
		do(t, "verify", lake, "-q")
	}
}

// deaf is a store that does what the PUT of a name asks for, and breaks the connection; after that it answers no
// requests but PUTs and DELETEs.
type deaf struct {
	*remotetest.S3
	name string
	on   atomic.Bool
}

func (d *deaf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, d.name):
		d.S3.ServeHTTP(httptest.NewRecorder(), r)
		d.on.Store(true)
		panic(http.ErrAbortHandler)
	case d.on.Load() && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		http.Error(w, "no", http.StatusForbidden)
	default:
		d.S3.ServeHTTP(w, r)
	}
}

// TestCatchUpUncertain: if it cannot be found out whether the change was made, nothing of it is removed, and that is
// said; so it is if it was made, and the hint could not be written.
func TestCatchUpUncertain(t *testing.T) {
	for to, names := range map[string][]string{"iceberg": {"/v2.metadata.json", "/version-hint.text"},
		"delta": {"/00000000000000000001.json"}} {
		for _, name := range names {
			l := newLife(t, 30)
			s3, _ := emptyBucket(t)
			asS3(t, s3)
			do(t, "convert", lifeTable, "--to", to, "-o", "s3://bucket/lake", "-q")
			l.load(5)
			d := &deaf{S3: s3, name: name}
			asS3(t, d)
			got := said("s3://", "convert", "--catch-up", lifeTable, "-o", "s3://bucket/lake", "-q")
			asS3(t, s3)
			if !d.on.Load() || !strings.HasSuffix(got, "status: 1") || strings.Contains(got, "nothing was committed") {
				t.Errorf("%s, %s: %s", to, name, got)
			}
			l.expect(l.rows, "s3://bucket/lake")
			do(t, "verify", "s3://bucket/lake", "-q")
		}
	}
}

// TestSnapshotsAtAddress: a table with several snapshots is the same at an address and in a directory.
func TestSnapshotsAtAddress(t *testing.T) {
	for i, to := range []string{"iceberg", "delta"} {
		l := newLife(t, 20)
		var past []map[int]string
		for range 3 {
			past = append(past, maps.Clone(l.rows))
			l.load(5 + l.r.IntN(9))
		}
		past = append(past, l.rows)
		s3, dir := emptyBucket(t)
		asS3(t, remotetest.NewFaults(0.05, uint64(i)).On(s3))
		do(t, "convert", lifeTable, "--every", "segment", "--to", to, "-o", "s3://bucket/lake", "-q")
		asS3(t, s3)
		l.expect(l.rows, "s3://bucket/lake")
		if got := said("s3://", "convert", lifeTable, "--every", "segment", "--to", to, "-o", "s3://bucket/lake",
			"-q"); !strings.HasSuffix(got, "status: 1") || s3.Uploads() > 0 {
			t.Errorf("case %d: a table was replaced: %s, %d uploads", i, got, s3.Uploads())
		}
		t.Chdir(dir)
		for k, at := range snapshotsOf(t) {
			l.expect(past[min(k, len(past)-1)], "s3://bucket/lake", "--at", at)
		}
	}
}

// TestCatchUpUnanswered: whichever request finds that an object has changed, a run that fails has not changed the
// table, or says that it has.
func TestCatchUpUnanswered(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "old.jsonl", "{\"id\": 1}\n{\"id\": 2}\n{\"id\": 3}\n")
	write(t, "new.jsonl", "{\"id\": 2}\n{\"id\": 4}\n")
	rows := map[bool]int{false: 3, true: 2}
	for _, to := range []string{"iceberg", "delta"} {
		s3, _ := emptyBucket(t)
		d := &deadEnd{S3: s3, status: http.StatusPreconditionFailed}
		asS3(t, d)
		failed, last := 0, false
		for at := int64(1); !last; at++ {
			lake := fmt.Sprintf("s3://bucket/%s%d", to, at)
			d.at = 0
			do(t, "convert", "old.jsonl", "--to", to, "-o", lake, "-q")
			d.n.Store(0)
			d.at = at
			got := said("s3://", "convert", "--catch-up", "new.jsonl", "-o", lake, "-q")
			last, d.at = d.n.Load() < at, 0
			changed := strings.HasSuffix(got, "status: 0") || strings.Contains(got, "the change was made")
			if !changed {
				failed++
			}
			if n := len(lakeRows(t, lake)); n != rows[changed] {
				t.Errorf("%s, request %d: the table has %d rows, want %d: %s", to, at, n, rows[changed], got)
			}
			do(t, "verify", lake, "-q")
		}
		if failed < 3 {
			t.Errorf("%s: %d runs failed", to, failed)
		}
	}
}
