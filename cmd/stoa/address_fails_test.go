package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/store/remote/remotetest"
)

// failing answers like h, except that one request, or all from it on, have their connection reset.
type failing struct {
	http.Handler
	from, to, n int64
}

func (f *failing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if k := atomic.AddInt64(&f.n, 1) - 1; k >= f.from && k < f.to {
		panic(http.ErrAbortHandler)
	}
	f.Handler.ServeHTTP(w, r)
}

// TestEachRequestFails: whichever request to a store fails, alone or with all later ones, an address returns all rows
// and status 0, or an error that names the object, and status 1: never another interpretation of its contents.
func TestEachRequestFails(t *testing.T) {
	for _, uri := range []string{"../../corpus/carbon/2.3.0/managed/managed_del", "../../corpus/kudu/1.18.1/d_minor"} {
		dir, name := bucketOf(t, uri)
		for _, verb := range [][]string{{"cat", "-f", "jsonl"}, {"count"}, {"schema"}} {
			want := said(dir, append(verb, filepath.Join(dir, name))...)
			if !strings.HasSuffix(want, "status: 0") {
				t.Fatalf("%s of %s: %s", verb[0], uri, want)
			}
			for _, all := range []bool{false, true} {
				step := int64(1)
				if testing.Short() {
					step = 3
				}
				for k := int64(0); ; k += step {
					f := &failing{Handler: &remotetest.S3{Dir: filepath.Dir(dir)}, from: k, to: k + 1}
					if all {
						f.to = 1 << 40
					}
					asS3(t, f)
					cli.RemoteOptions.Tries = 1
					got := said("s3://bucket", append(verb, "s3://bucket/"+name)...)
					if atomic.LoadInt64(&f.n) <= k { // it needs no more requests
						break
					}
					if got != want && !(strings.HasSuffix(got, "status: 1") && strings.Contains(got, "BUCKET")) {
						t.Errorf("%s of %s, request %d (and those after it: %t): %s", verb[0], uri, k, all, got)
					}
				}
			}
		}
	}
}
