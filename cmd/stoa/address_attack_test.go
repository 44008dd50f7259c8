package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/cli"
	"stoa/store/remote/remotetest"
	"stoa/store/web"
)

// attack is a random fault plan for one run of one verb.
type attack struct {
	faults   *remotetest.Faults
	changeAt int64 // the request before which an object is replaced; 0: none
	dieAt    int64 // the request from which on nothing is answered; 0: never
	changed  string
	requests atomic.Int64
	change   func()
}

func (a *attack) on(h http.Handler) http.Handler {
	h = a.faults.On(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := a.requests.Add(1)
		if n == a.changeAt {
			a.change()
		}
		if n == a.dieAt {
			a.faults.Dead.Store(true)
		}
		h.ServeHTTP(w, r)
	})
}

// attackVerbs are verbs that print rows, and those that judge files: what a network does is damage to neither.
var attackVerbs = [][]string{{"cat", "-f", "jsonl"}, {"count"}, {"cat", "-f", "jsonl", "--damaged", "skip-rows"},
	{"verify", "-f", "json"}, {"recover", "-q", "--to", "jsonl", "-o", "-"}, {"stats", "-f", "json"}}

// TestRandomAttack: with latency, failing requests, cut bodies, throttling, servers that die and objects that are
// replaced, a verb prints what it prints for the files on a disk, before or after the replacement, or it fails with
// status 1 and names the place. STOA_SEED and STOA_ROUNDS choose others.
func TestRandomAttack(t *testing.T) {
	seed, rounds := seedAndRounds(t, 2, 1)
	equal, failed := 0, 0
	for i, src := range faultSources(t) {
		dir, name := bucketOf(t, src.uri)
		wants := map[int]string{}
		for round := range rounds {
			rnd := rand.New(rand.NewPCG(seed+uint64(round), uint64(i)))
			verb := rnd.IntN(len(attackVerbs))
			local := func() string { return said(dir, append(attackVerbs[verb], filepath.Join(dir, name))...) }
			if wants[verb] == "" {
				wants[verb] = local()
			}
			want := []string{wants[verb]}
			what := fmt.Sprintf("seed %d, %s, %v", seed+uint64(round), src.name, attackVerbs[verb])
			a := &attack{faults: remotetest.NewFaults([]float64{0, 0.05, 0.3, 0.8}[rnd.IntN(4)], rnd.Uint64())}
			a.faults.Latency = time.Duration(rnd.IntN(4)) * time.Millisecond
			restore := func() {}
			switch rnd.IntN(4) {
			case 0:
				a.dieAt = 1 + rnd.Int64N(20)
			case 1:
				a.changeAt = 1 + rnd.Int64N(12)
				var other string
				other, restore = a.replacement(t, rnd, dir, local)
				want = append(want, other)
			}
			got := attacked(t, rnd, a, dir, name, attackVerbs[verb])
			restore()
			switch {
			case got == want[0] || got == want[len(want)-1]:
				equal++
			case strings.HasSuffix(got, "status: 1") && // readers also look above the place
				(strings.Contains(got, "BUCKET") || strings.Contains(got, "://")):
				failed++
			default:
				t.Errorf("%s (%.2f fail, dead at %d, %s changed at %d): %s\n%.3000s", what, a.faults.Share, a.dieAt,
					a.changed, a.changeAt, firstDifference(got, want[len(want)-1]), got)
			}
		}
	}
	t.Logf("%d answers are those of a disk, %d are errors", equal, failed)
}

// attacked runs a verb against one of the kinds of servers.
func attacked(t *testing.T, rnd *rand.Rand, a *attack, dir, name string, verb []string) string {
	t.Helper()
	place := "s3://bucket"
	files := remotetest.Web(filepath.Dir(dir), web.Index)
	asS3(t, http.NotFoundHandler())
	switch rnd.IntN(4) {
	case 0, 1:
		asS3(t, a.on(&remotetest.S3{Dir: filepath.Dir(dir), Page: 1 + rnd.IntN(9)}))
	case 2:
		files = remotetest.NoRanges(files)
		fallthrough
	default:
		s := httptest.NewServer(a.on(files))
		defer s.Close()
		place = s.URL + "/bucket"
	}
	cli.RemoteOptions.Tries = 2 + rnd.IntN(7)
	cli.RemoteOptions.Idle = 5 * time.Second
	args := append(append([]string{}, verb...), place+"/"+name)
	if rnd.IntN(3) == 0 {
		args = append(args, "--cache", t.TempDir())
	}
	return said(place, args...)
}

// replacement prepares the replacement of a random object by one with a changed byte, and returns what the verb says
// of that. The modification times differ by seconds, the resolution of web servers.
func (a *attack) replacement(t *testing.T, rnd *rand.Rand, dir string, local func() string) (want string,
	restore func()) {
	t.Helper()
	keys := keysOf(t, dir)
	file := filepath.Join(dir, keys[rnd.IntN(len(keys))])
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(old)
	if len(changed) > 0 {
		changed[rnd.IntN(len(changed))] ^= 1 << rnd.IntN(8)
	}
	set := func(b []byte, at time.Time) {
		if err := os.WriteFile(file+".new", b, 0o666); err != nil {
			t.Error(err)
		}
		os.Chtimes(file+".new", at, at)
		if err := os.Rename(file+".new", file); err != nil {
			t.Error(err)
		}
	}
	set(changed, st.ModTime().Add(5*time.Second))
	want = local()
	set(old, st.ModTime())
	a.changed = filepath.Base(file)
	a.change = func() { set(changed, st.ModTime().Add(5*time.Second)) }
	return want, func() { set(old, st.ModTime()) }
}
