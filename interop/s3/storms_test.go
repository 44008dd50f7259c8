//go:build interop

package s3

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stoa/interop/fuzz"
	"stoa/store/remote/remotetest"
)

// TestStorms: whatever happens between stoa and versitygw in the middle of any verb, it says what it says on a disk, or
// fails. STOA_SEED chooses others.
func TestStorms(t *testing.T) {
	const rounds = 40
	g := start(t)
	seed := fuzz.Seed(t)
	disk := t.TempDir()
	remotetest.Fixture(t, "../..", disk, g.run)
	remotetest.AddKinds(t, disk, g.run)
	other, was, is := remotetest.Other(t, disk, g.run)
	if err := os.CopyFS(g.dir, os.DirFS(disk)); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(g.dir, "a.parquet")
	put := func(b []byte, age time.Duration) func() {
		then := time.Now().Add(-age)
		return func() {
			err := os.WriteFile(at+".new", b, 0o666)
			if err == nil {
				err = os.Chtimes(at+".new", then, then)
			}
			if err == nil {
				err = os.Rename(at+".new", at)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	s := &remotetest.Storm{Replace: put(is, 0), Restore: put(was, time.Hour)}
	s.Restore()
	to, err := url.Parse(g.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(s.On(httputil.NewSingleHostReverseProxy(to)))
	defer proxy.Close()
	g.env = append(g.env, "AWS_ENDPOINT_URL_S3="+proxy.URL)
	fine, failed := remotetest.Storms(t, g.run, s, disk, other, "s3://bucket", seed, rounds)
	t.Logf("COUNT lines of the command in storms between stoa and a bucket, right or ended with an error: %d",
		fine+failed)
	t.Logf("seed %d: %d are right, %d ended with an error", seed, fine, failed)
}
