package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stoa/store/remote/remotetest"
)

// waves is a store that answers requests together: once no other has arrived for a while. It counts how often it does,
// which is how many requests had to wait for the answer to another.
type waves struct {
	http.Handler
	quiet time.Duration

	mu       sync.Mutex
	timer    *time.Timer
	now      chan struct{} // closed when the requests that wait are answered
	n        int
	requests int
}

func (s *waves) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests++
	if s.now == nil {
		s.now = make(chan struct{})
		s.timer = time.AfterFunc(s.quiet, s.answer)
	} else {
		s.timer.Reset(s.quiet)
	}
	now := s.now
	s.mu.Unlock()
	<-now
	s.Handler.ServeHTTP(w, r)
}

func (s *waves) answer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != nil {
		close(s.now)
		s.now = nil
		s.n++
	}
}

// TestOpeningAsksLittle: verbs wait for few answers, one after another, however many objects a table has, and request
// none of them twice.
func TestOpeningAsksLittle(t *testing.T) {
	type source struct {
		src   string
		verb  []string
		waves int
	}
	all := []source{
		{"../../format/kudu/testdata/file#autoinc", []string{"count"}, 5},
		{"../../corpus/carbon/2.3.0/managed/managed_del", []string{"cat", "-f", "jsonl"}, 8},
	}
	if corpus := os.Getenv("STOA_CORPUS"); corpus != "" { // 332 files of metadata: 0.6 s, if an answer takes 20 ms
		all = append(all, source{filepath.Join(corpus, "kudu/fs_log#d_major"), []string{"count"}, 30})
	}
	for _, c := range all {
		dir, name := bucketOf(t, c.src)
		objects := len(keysOf(t, dir))
		s := &waves{Handler: &remotetest.S3{Dir: filepath.Dir(dir)}, quiet: 30 * time.Millisecond}
		asS3(t, s)
		got := said("s3://bucket", append(c.verb, "s3://bucket/"+name)...)
		if !strings.HasSuffix(got, "status: 0") {
			t.Error(got)
		}
		what := fmt.Sprintf("%s %s: %d objects", c.verb[0], name, objects)
		t.Logf("%s, %d requests in %d waves", what, s.requests, s.n)
		if s.n > c.waves {
			t.Errorf("%s: got %d waves of requests, want at most %d", what, s.n, c.waves)
		}
		if s.requests > objects+4 {
			t.Errorf("%s: %d requests", what, s.requests)
		}
	}
}
