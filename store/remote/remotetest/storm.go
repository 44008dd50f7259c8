package remotetest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Storm stands between a client and a store of S3, and lets something happen at one request of a run, or from it on.
type Storm struct {
	// Replace puts another file in the place of the object a.parquet, and Restore the former; nil: nothing is replaced.
	Replace, Restore func()

	mu      sync.Mutex
	n       int64 // requests so far
	what    calamity
	at      int64
	forGood bool
}

// calamity is what happens.
type calamity struct {
	name   string
	status int
	code   string
	paged  bool // only pages of listings after the first
}

var calamities = []calamity{{name: "calm"}, {"forbidden", http.StatusForbidden, "AccessDenied", false},
	{"missing", http.StatusNotFound, "NoSuchKey", false},
	{"changed", http.StatusPreconditionFailed, "PreconditionFailed", false},
	{"expired", http.StatusBadRequest, "ExpiredToken", false},
	{"busy", http.StatusServiceUnavailable, "SlowDown", false}, {"reset", 0, "", false},
	{"page", http.StatusInternalServerError, "InternalError", true},
	{"page", http.StatusForbidden, "AccessDenied", true}, {"page", http.StatusNotFound, "NoSuchBucket", true},
	{name: "replaced"}}

// On wraps a store.
func (s *Storm) On(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		paged := q.Get("start-after") != "" || q.Get("continuation-token") != ""
		s.mu.Lock()
		s.n++
		now := s.n == s.at || s.forGood && s.n > s.at
		if s.what.paged {
			now = paged
		}
		what := s.what
		if now && what.name == "replaced" {
			s.Replace()
		}
		s.mu.Unlock()
		switch {
		case !now || what.name == "calm" || what.name == "replaced":
			h.ServeHTTP(w, r)
		case what.status == 0:
			panic(http.ErrAbortHandler)
		default:
			fail(w, r, what.status, what.code)
		}
	})
}

// set begins a run.
func (s *Storm) set(what calamity, at int64, forGood bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n, s.what, s.at, s.forGood = 0, what, at, forGood
}

func (s *Storm) seen() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// inStorms are lines for places AT in storms. TWIN is a copy of the place on a disk.
var inStorms = []string{"cat -f jsonl AT", "head -f jsonl -n 5 AT", "tail -f jsonl -n 5 AT", "count AT", "schema AT",
	"stats -f json AT", "meta AT", "ls -f json AT", "verify -f json AT", "verify --deep -f json AT", "describe AT",
	"explain AT", "diff AT TWIN", "diff TWIN AT", "seal -q AT -o TMP/some.seal", "plan AT", "census -f json AT",
	"convert -q AT --to jsonl -o -", "recover -q AT --to jsonl -o -", "convert -q --all AT -o TMP/all",
	"cat -f jsonl --damaged skip-rows AT", "cat -f jsonl --where id>2 AT", "history AT"}

var stormy = []string{"/a.parquet", "/kudu", "/table", "/store", "/cluster", "/cluster#autoinc", "/lake", "/set",
	"/broken.cfile", "/file.trv", "/*.parquet", ""}

// Storms runs lines of the command at an address in storms: what a line says and its status are those of a disk, where
// other is one whose a.parquet is the replacement, or it fails with status 1 and names an address. Files that are made
// are whole then.
func Storms(t testing.TB, run Command, s *Storm, disk, other, address string, seed uint64, rounds int) (fine,
	failed int) {
	t.Helper()
	needs := map[string]int64{}
	twin := t.TempDir()
	if err := os.CopyFS(twin, os.DirFS(disk)); err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		r := rand.New(rand.NewPCG(seed+uint64(round), 23))
		place := stormy[r.IntN(len(stormy))]
		line := strings.ReplaceAll(inStorms[r.IntN(len(inStorms))], "AT", "IN"+place)
		line = strings.ReplaceAll(line, "TWIN", twin+place)
		what := calamities[r.IntN(len(calamities))]
		if what.name == "replaced" && s.Replace == nil {
			what = calamities[0]
		}
		tmp := t.TempDir()
		want := said(run, line, disk, tmp)
		wants := []string{want}
		if what.name == "replaced" {
			wants = append(wants, said(run, line, other, t.TempDir()))
		}
		if needs[line] == 0 {
			s.set(calamities[0], 0, false)
			if got := said(run, line, address, t.TempDir()); got != want {
				t.Errorf("%s in a calm: %s", line, difference(got, want))
			}
			needs[line] = s.seen()
		}
		at, forGood := 1+r.Int64N(needs[line]+1), r.IntN(2) == 0
		s.set(what, at, forGood)
		two := t.TempDir()
		got := said(run, line, address, two)
		if s.Restore != nil {
			s.Restore()
		}
		is := fmt.Sprintf("seed %d: %s, %s %d at request %d of %d (for good: %t)", seed+uint64(round), line, what.name,
			what.status, at, needs[line], forGood)
		switch {
		case got == wants[0], got == wants[len(wants)-1]:
			fine++
		case strings.HasSuffix(got, "status 1") && (strings.Contains(got, "IN") || strings.Contains(got, "://")):
			failed++
			if left, _ := filepath.Glob(two + "/*.seal"); len(left) > 0 {
				t.Errorf("%s: %v is left", is, left)
			}
		default:
			t.Errorf("%s: %s", is, difference(got, wants[len(wants)-1]))
		}
	}
	return fine, failed
}

func said(run Command, line, in, tmp string) string {
	all, status := told(run, line, in, "nowhere", tmp)
	return fmt.Sprintf("%s status %d", withoutHints(all, ""), status)
}

// Other returns a copy of Fixture's directory with another a.parquet, and the contents of both.
func Other(t testing.TB, dir string, run Command) (other string, was, is []byte) {
	t.Helper()
	other = t.TempDir()
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(other, "a.parquet")
	was, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	if said, status := run("convert", "-q", "--force", filepath.Join(dir, "a.parquet"), "--where", "id <> 77", "-o",
		at); status != 0 {
		t.Fatal(said)
	}
	if is, err = os.ReadFile(at); err != nil {
		t.Fatal(err)
	}
	return other, was, is
}
