package main

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"stoa/store/remote/remotetest"
)

// TestStorms: whatever happens to a store in the middle of any verb (access that ends, credentials that expire, objects
// that vanish or are replaced, listings that fail after their first page), it says what it says on a disk, or fails.
// STOA_SEED and STOA_ROUNDS choose others.
func TestStorms(t *testing.T) {
	seed, rounds := seedAndRounds(t, 300, 40)
	disk := t.TempDir()
	remotetest.Fixture(t, "../..", disk, toldBy)
	remotetest.AddKinds(t, disk, toldBy)
	other, restore, replace := remotetest.Other(t, disk, toldBy)
	s3, dir := emptyBucket(t)
	if err := os.CopyFS(dir, os.DirFS(disk)); err != nil {
		t.Fatal(err)
	}
	s3.Page = 3
	at := filepath.Join(dir, "a.parquet")
	swap := func(b []byte, then time.Time) func() {
		return func() {
			write(t, at+".new", string(b))
			os.Chtimes(at+".new", then, then)
			if err := os.Rename(at+".new", at); err != nil {
				t.Error(err)
			}
		}
	}
	var mu sync.Mutex
	running := false
	alone := func(do func(), replaces bool) func() { // requests can still come when a line has ended
		return func() {
			mu.Lock()
			defer mu.Unlock()
			if running || !replaces {
				do()
			}
		}
	}
	s := &remotetest.Storm{Replace: alone(swap(replace, time.Now()), true),
		Restore: alone(swap(restore, time.Now().Add(-time.Hour)), false)}
	s.Restore()
	asS3(t, s.On(s3))
	run := func(args ...string) (string, int) {
		set := func(now bool) { mu.Lock(); running = now; mu.Unlock() }
		set(true)
		defer set(false)
		return toldBy(args...)
	}
	fine, failed := remotetest.Storms(t, run, s, disk, other, "s3://bucket", seed, rounds)
	t.Logf("%d answers are those of a disk, %d are errors", fine, failed)
	if fine < rounds/10 || failed < rounds/10 {
		t.Error("too few of one kind")
	}
}
