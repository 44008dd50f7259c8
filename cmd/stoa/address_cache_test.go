package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stoa/store/remote/remotetest"
)

// TestCache: bytes of an address that were read once come from the cache, also with several processes at a time, and
// with a damaged or too small cache; a changed object is read again, and the cache contains no secret.
func TestCache(t *testing.T) {
	dir, name, want := managed(t)
	s3 := &remotetest.S3{Dir: filepath.Dir(dir)}
	var gets atomic.Int64
	asS3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && !r.URL.Query().Has("list-type") {
			gets.Add(1)
		}
		s3.ServeHTTP(w, r)
	}))
	cache := filepath.Join(t.TempDir(), "cache")
	args := []string{"cat", "-f", "jsonl", "s3://bucket/" + name, "--cache", cache}
	read := func(what string, most int64, more ...string) {
		t.Helper()
		gets.Store(0)
		if got := said("s3://bucket", append(args, more...)...); got != want {
			t.Errorf("%s: %s", what, firstDifference(got, want))
		}
		if n := gets.Load(); n > most {
			t.Errorf("%s: %d objects were asked for, want at most %d", what, n, most)
		}
	}
	read("first", 1000)
	all := gets.Load() // some of these may end with the verb: nobody waits for data that is read ahead
	read("second", all/2)
	kept := keysOf(t, cache)
	if len(kept) == 0 {
		t.Fatal("nothing is kept")
	}
	for i, k := range kept {
		file := filepath.Join(cache, k)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), testSecret) || strings.Contains(k, testKey) {
			t.Errorf("%s has a secret in it", k)
		}
		if b[len(b)/2] ^= 1; i%2 == 0 {
			b = b[:len(b)/2]
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read("damaged", 1000)
	read("after it was damaged", all/2)
	var work sync.WaitGroup
	os.RemoveAll(cache)
	for range 4 {
		work.Go(func() { read("several", 1000) })
	}
	work.Wait()
	read("after several", all/2)
	read("too small", 1000, "--cache-size", "4kB")
	now := time.Now().Add(time.Minute)
	for _, k := range keysOf(t, dir) {
		if strings.HasSuffix(k, ".carbondata") {
			b, _ := os.ReadFile(filepath.Join(dir, k))
			os.WriteFile(filepath.Join(dir, k), append(b, 0), 0o666)
			os.Chtimes(filepath.Join(dir, k), now, now)
		}
	}
	if got := said("s3://bucket", args...); got == want {
		t.Error("an object that changed comes from the cache")
	}
}
