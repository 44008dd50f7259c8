//go:build unix

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/cli"
	"stoa/store/remote/remotetest"
)

// stopping is a store that carries out one write, tells the process that asked for it to end, and then answers, later
// or not at all.
type stopping struct {
	*remotetest.S3
	at     int64 // number of the write
	pause  time.Duration
	answer bool
	cmd    *exec.Cmd
	n      atomic.Int64
}

func (s *stopping) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || s.n.Add(1) != s.at {
		s.S3.ServeHTTP(w, r)
		return
	}
	if !s.answer {
		s.S3.ServeHTTP(httptest.NewRecorder(), r)
		s.cmd.Process.Signal(syscall.SIGTERM)
		panic(http.ErrAbortHandler)
	}
	s.S3.ServeHTTP(w, r) // small answers are sent when this function ends
	s.cmd.Process.Signal(syscall.SIGTERM)
	time.Sleep(s.pause)
}

// TestSignalAtTheEnd: whichever write a signal follows, the status is 0 if the output is whole, and 130 if there is
// none.
func TestSignalAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	text, sorted := numbered(0, 300)
	small, large := filepath.Join(dir, "small.jsonl"), filepath.Join(dir, "large.jsonl")
	write(t, small, text)
	long, longSorted := numbered(0, 250_000)
	write(t, large, long)
	whole := map[int]int{}
	for _, c := range []struct {
		src, to, place string
		after          []string
	}{{small, "parquet", "s3://bucket/x.parquet", sorted}, {small, "cfile", "s3://bucket/d", sorted},
		{large, "jsonl", "s3://bucket/x.jsonl", longSorted}} {
		for _, how := range []struct {
			pause  time.Duration
			answer bool
		}{{0, true}, {grace + grace/4, true}, {0, false}} {
			for at := int64(1); ; at++ {
				s3, _ := emptyBucket(t)
				s := &stopping{S3: s3, at: at, pause: how.pause, answer: how.answer}
				asS3(t, s)
				s.cmd = exec.Command(os.Args[0], "convert", c.src, "--to", c.to, "-o", c.place)
				s.cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1", "TMPDIR="+t.TempDir())
				out, _ := s.cmd.CombinedOutput()
				status := s.cmd.ProcessState.ExitCode()
				if s.n.Load() < at { // there are fewer writes
					break
				}
				what := fmt.Sprintf("%s, write %d, pause %s, answered: %t: status %d: %s", c.to, at, how.pause,
					how.answer, status, out)
				got := rowsAt(t, s3, c.place)
				whole[status]++
				if is := got == strings.Join(c.after, "\n"); is != (status == 0) || status != 0 &&
					(status != cli.StatusStopped || got != "nothing" && got != "unfinished") {
					t.Errorf("%s: whole: %t: %.300s", what, is, got)
				}
			}
		}
	}
	t.Log("by status:", whole)
	if whole[0] < 3 || whole[cli.StatusStopped] < 3 {
		t.Error("too few of one kind")
	}
}
