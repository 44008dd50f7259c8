package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stoa/internal/effort"
	"stoa/store/remote/remotetest"
)

// killer kills the process that writes to a store, at its request number at: before it is answered, or after.
type killer struct {
	*remotetest.S3
	at     int64
	answer bool
	cmd    *exec.Cmd
	n      atomic.Int64
}

func (k *killer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := k.n.Add(1)
	kill := k.at > 0 && n >= k.at
	if kill && !(n == k.at && k.answer) {
		k.cmd.Process.Kill()
		panic(http.ErrAbortHandler)
	}
	k.S3.ServeHTTP(w, r)
	if kill {
		k.cmd.Process.Kill()
	}
}

// run runs the command until it ends, or is killed at a request; 0: it is not killed. It returns how many there were.
func (k *killer) run(t *testing.T, at int64, answer bool, args ...string) int64 {
	t.Helper()
	asS3(t, k)
	k.n.Store(0)
	k.at, k.answer = at, answer
	k.cmd = exec.Command(os.Args[0], args...)
	k.cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1", "TMPDIR="+t.TempDir())
	out, err := k.cmd.CombinedOutput()
	if at == 0 && err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
	return k.n.Load()
}

// rowsAt returns what a place holds: its rows in order, or that it is nothing yet, or that it is refused.
func rowsAt(t *testing.T, s3 *remotetest.S3, place string) string {
	t.Helper()
	asS3(t, s3)
	got := said("s3://bucket", "cat", "-f", "jsonl", place)
	rows, _, _ := strings.Cut(got, "\nstderr:")
	switch {
	case strings.HasSuffix(got, "status: 0"):
		lines := strings.Split(rows, "\n")
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	case strings.HasSuffix(got, "status: 1") && strings.Contains(got, "stoa clean"):
		return "unfinished"
	case strings.HasSuffix(got, "status: 1") &&
		strings.Contains(got, "no such file"):
		return "nothing"
	}
	return got
}

// numbered returns n rows from first on as JSON lines, and as rowsAt returns them.
func numbered(first, n int) (text string, sorted []string) {
	var all []string
	for i := first; i < first+n; i++ {
		all = append(all, fmt.Sprintf(`{"id":%d,"name":"row %d"}`, i, i))
	}
	sorted = slices.Sorted(slices.Values(append(slices.Clone(all), "")))
	return strings.Join(all, "\n") + "\n", sorted
}

// killCase is a command that is killed, after others that are not, and what a place holds before and after it.
type killCase struct {
	name, place   string
	first         [][]string
	then          []string
	before, after string
}

// killCases returns writes of objects, directories and changes of a table.
func killCases(t *testing.T) (cases []killCase) {
	text, sorted := numbered(0, 300)
	after := strings.Join(sorted, "\n")
	oldText, sorted := numbered(5000, 20)
	before := strings.Join(sorted, "\n")
	_, sorted = numbered(0, 300)
	for i := 5000; i < 5020; i++ {
		sorted = append(sorted, fmt.Sprintf(`{"id":%d,"name":"row %d"}`, i, i))
	}
	slices.Sort(sorted)
	both := strings.Join(sorted, "\n")
	dir := t.TempDir()
	src, old, schema := filepath.Join(dir, "new.jsonl"), filepath.Join(dir, "old.jsonl"), filepath.Join(dir, "schema")
	write(t, src, text)
	write(t, old, oldText)
	write(t, schema, "id: int32, name: utf8\n")
	sparkSchema := filepath.Join(dir, "columns")
	write(t, sparkSchema, "id int\nname string\n")
	convert := func(from, to, place string) []string {
		return []string{"convert", "-q", from, "--schema", schema, "--to", to, "-o", place, "--force"}
	}
	for _, to := range []string{"parquet", "arrow", "trevni", "jsonl"} {
		place := "s3://bucket/x." + to
		cases = append(cases, killCase{to, place, [][]string{convert(old, to, place)}, convert(src, to, place), before,
			after})
	}
	const place = "s3://bucket/d"
	for _, to := range []string{"cfile", "iceberg", "delta"} {
		cases = append(cases, killCase{to, place, nil, convert(src, to, place), "nothing", after})
	}
	made := [][]string{{"create", place, "--schema", sparkSchema}, {"load", place, old}}
	loaded := append(slices.Clone(made), []string{"load", place, src})
	return append(cases, killCase{"load", place, made, loaded[2], before, both},
		killCase{"delete", place, loaded, []string{"delete", place, "--where", "id >= 5000"}, both, after},
		killCase{"compact", place, loaded, []string{"compact", place, "--major"}, both, both},
		killCase{"truncate", place, loaded, []string{"truncate", place, "--yes"}, both, ""})
}

// TestKilledAtAnyRequest: whenever a writer is killed, a place holds what it held before, or what it was to hold after,
// or readers refuse it and name the command that removes what is there; after that it can be written again.
func TestKilledAtAnyRequest(t *testing.T) {
	seed, rounds := seedAndRounds(t, 4, 1)
	seen := map[string]int{}
	for i, c := range killCases(t) {
		s3, _ := emptyBucket(t)
		k := &killer{S3: s3}
		for _, args := range c.first {
			k.run(t, 0, false, args...)
		}
		most := k.run(t, 0, false, c.then...)
		if got := rowsAt(t, s3, c.place); got != c.after {
			t.Fatalf("%s: %.600s", c.name, got)
		}
		for round := range rounds {
			r := rand.New(rand.NewPCG(seed+uint64(round), uint64(i)))
			at, answer := 1+r.Int64N(most), r.IntN(2) == 0
			s3, dir := emptyBucket(t)
			k := &killer{S3: s3}
			for _, args := range c.first {
				k.run(t, 0, false, args...)
			}
			k.run(t, at, answer, c.then...)
			what := fmt.Sprintf("%s, killed at request %d of %d (answered: %t)", c.name, at, most, answer)
			got := rowsAt(t, s3, c.place)
			switch got {
			case c.before:
				seen["before"]++
			case c.after:
				seen["after"]++
			case "unfinished":
				seen["unfinished"]++
			default:
				t.Errorf("%s: %.900s\n%q", what, got, keysOf(t, dir))
				continue
			}
			said("s3://bucket", "clean", "s3://bucket/d", "--older-than", "-1m")
			said("s3://bucket", "clean", "s3://bucket/", "--older-than", "-1m")
			if s3.Uploads() > 0 {
				t.Errorf("%s: clean leaves %d uploads", what, s3.Uploads())
			}
			cleaned := rowsAt(t, s3, c.place)
			if cleaned != got && !(got == "unfinished" && (cleaned == c.before || cleaned == c.after)) {
				t.Errorf("%s: after clean: %.900s", what, cleaned)
			}
			if cleaned == c.before {
				k.run(t, 0, false, c.then...)
				if got := rowsAt(t, s3, c.place); got != c.after {
					t.Errorf("%s: written again: %.900s", what, got)
				}
			}
		}
	}
	t.Log(seen)
}

// deadEnd is a store that answers request number at with a status.
type deadEnd struct {
	*remotetest.S3
	at     int64
	status int
	n      atomic.Int64
}

func (d *deadEnd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if d.n.Add(1) == d.at {
		w.WriteHeader(d.status)
		return
	}
	d.S3.ServeHTTP(w, r)
}

// TestUnansweredAtAnyRequest: whichever request of a writer finds that an object has changed, or is denied, a command
// that fails leaves what a place held before, unless it says what it did; one that succeeds has done it.
func TestUnansweredAtAnyRequest(t *testing.T) {
	seen, step := map[string]int{}, int64(effort.Step(3, 7))
	for _, c := range killCases(t) {
		for _, status := range []int{http.StatusPreconditionFailed, http.StatusForbidden} {
			last := false
			for at := int64(1); !last; at += step {
				s3, _ := emptyBucket(t)
				asS3(t, s3)
				for _, args := range c.first {
					do(t, args...)
				}
				d := &deadEnd{S3: s3, at: at, status: status}
				asS3(t, d)
				told := said("s3://bucket", c.then...)
				last = d.n.Load() < at
				got := rowsAt(t, s3, c.place)
				fine := strings.HasSuffix(told, "status: 0")
				switch {
				case fine && got == c.after:
					seen["after"]++
				case !fine && got == c.before:
					seen["before"]++
				case !fine && got == "unfinished":
					seen["unfinished"]++
				default:
					t.Errorf("%s, status %d at request %d: the place has %.300s\n%s", c.name, status, at, got, told)
				}
			}
		}
	}
	if t.Log(seen); seen["before"] < 5 || seen["after"] < 5 {
		t.Error("this proves nothing")
	}
}

// late is a store that carries out one write only after the process that asked for it, and was then told to end, is
// gone.
type late struct {
	*remotetest.S3
	at  int64 // number of the write
	cmd *exec.Cmd
	n   atomic.Int64
	do  chan func() // the write
}

func (l *late) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPut || l.n.Add(1) != l.at {
		l.S3.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	again := r.Clone(context.Background())
	again.Body = io.NopCloser(bytes.NewReader(body))
	l.do <- func() { l.S3.ServeHTTP(httptest.NewRecorder(), again) }
	l.cmd.Process.Signal(syscall.SIGTERM)
	<-r.Context().Done()
}

// TestLateWrites: whichever write of an interrupted command a store carries out later, no part of a directory is
// readable that nothing marks as unfinished, and clean leaves nothing of it.
func TestLateWrites(t *testing.T) {
	dir := t.TempDir()
	text, sorted := numbered(0, 300)
	src := filepath.Join(dir, "new.jsonl")
	write(t, src, text)
	for _, to := range []string{"cfile", "iceberg", "parquet"} {
		place := "s3://bucket/d/t"
		if to == "parquet" {
			place += ".parquet"
		}
		for at := int64(1); ; at++ {
			s3, root := emptyBucket(t)
			l := &late{S3: s3, at: at, do: make(chan func(), 1)}
			asS3(t, l)
			l.cmd = exec.Command(os.Args[0], "convert", src, "--to", to, "-o", place)
			l.cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1", "TMPDIR="+t.TempDir())
			out, _ := l.cmd.CombinedOutput()
			if len(l.do) == 0 { // there are fewer writes
				if at == 1 {
					t.Errorf("%s: nothing was written: %s", to, out)
				}
				break
			}
			(<-l.do)()
			what := fmt.Sprintf("%s, write %d: %s", to, at, out)
			got := rowsAt(t, s3, place)
			if got != "nothing" && got != "unfinished" && got != strings.Join(sorted, "\n") {
				t.Errorf("%s: %.600s", what, got)
			}
			if got == "nothing" || got == "unfinished" {
				said("s3://bucket", "clean", "s3://bucket/d", "--older-than", "-1m")
				if keys := keysOf(t, root); len(keys) > 0 {
					t.Errorf("%s: %q stay", what, keys)
				}
			}
		}
	}
}

// TestLateWritesOfTables: whichever write of an interrupted change of a table a store carries out later, the table has
// its rows from before or after the change, or readers name the command that removes what is there, and then it has.
func TestLateWritesOfTables(t *testing.T) {
	seen := map[string]int{}
	for _, c := range killCases(t) {
		if c.name != "load" && c.name != "delete" && c.name != "compact" {
			continue
		}
		for at := int64(1); ; at++ {
			s3, root := emptyBucket(t)
			asS3(t, s3)
			for _, args := range c.first {
				do(t, args...)
			}
			l := &late{S3: s3, at: at, do: make(chan func(), 1)}
			asS3(t, l)
			l.cmd = exec.Command(os.Args[0], c.then...)
			l.cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1", "TMPDIR="+t.TempDir())
			out, _ := l.cmd.CombinedOutput()
			if len(l.do) == 0 { // there are fewer writes
				break
			}
			(<-l.do)()
			what := fmt.Sprintf("%s, write %d: %s", c.name, at, out)
			switch got := rowsAt(t, s3, c.place); got {
			case c.before:
				seen["before"]++
			case c.after:
				seen["after"]++
			case "unfinished":
				seen["unfinished"]++
			default:
				t.Errorf("%s: %.600s\n%q", what, got, keysOf(t, root))
			}
			told := said("s3://bucket", "clean", "s3://bucket/d", "--older-than", "-1m")
			got := rowsAt(t, s3, c.place)
			if got != c.before && got != c.after {
				t.Errorf("%s: after clean: %.600s\n%s\n%q", what, got, told, keysOf(t, root))
			}
			if got == c.before && c.before != c.after {
				told := said("s3://bucket", c.then...)
				if got := rowsAt(t, s3, c.place); got != c.after {
					t.Errorf("%s: written again: %.600s\n%s", what, got, told)
				}
			}
		}
	}
	t.Log(seen)
}

// refusing is a store that refuses one write of a change, and carries out those that it has received beside it later,
// whether somebody still waits for the answers or not.
type refusing struct {
	*remotetest.S3
	name    string // of the object that is refused
	refused chan struct{}
	once    sync.Once
}

func (s *refusing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/1_") &&
		!strings.Contains(r.URL.Path, "Segment_1"):
		s.S3.ServeHTTP(w, r)
	case strings.HasSuffix(r.URL.Path, s.name):
		w.WriteHeader(http.StatusPreconditionFailed)
		s.once.Do(func() { close(s.refused) })
	default:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		<-s.refused
		time.Sleep(50 * time.Millisecond) // so that a client that gives up has done so
		again := r.Clone(context.Background())
		again.Body = io.NopCloser(bytes.NewReader(body))
		s.S3.ServeHTTP(w, again)
	}
}

// TestRefusedBesideOthers: if a store refuses one file of a load, those that it receives at the same time are removed,
// although it may carry out their writes after the refusal, and the table is as before.
func TestRefusedBesideOthers(t *testing.T) {
	for _, c := range killCases(t) {
		if c.name != "load" {
			continue
		}
		for _, name := range []string{".carbondata", ".carbonindexmerge", ".segment"} {
			s3, root := emptyBucket(t)
			asS3(t, s3)
			for _, args := range c.first {
				do(t, args...)
			}
			keys := keysOf(t, root)
			asS3(t, &refusing{S3: s3, name: name, refused: make(chan struct{})})
			if told := said("s3://bucket", c.then...); !strings.HasSuffix(told, "status: 1") {
				t.Errorf("%s: %s", name, told)
			}
			if got := rowsAt(t, s3, c.place); got != c.before {
				t.Errorf("%s: %.600s", name, got)
			}
			if now := keysOf(t, root); !slices.Equal(now, keys) {
				t.Errorf("%s: %q, before %q", name, now, keys)
			}
		}
	}
}
