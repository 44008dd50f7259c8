package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stoa/store/remote/remotetest"
)

// TestWorkersShareRequests: several workers that read the same columns ask for little more often than one does, for
// every byte once, and read the rows of the disk.
func TestWorkersShareRequests(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bucket")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	r := rand.New(rand.NewPCG(3, 1))
	b.WriteString("a,b,c,d,e\n")
	for i := range 3_000_000 {
		fmt.Fprintf(&b, "%d,%d,%f,%x,%d\n", i, r.Uint64()>>4, r.Float64(), r.Uint64(), r.Uint64()>>20)
	}
	src := filepath.Join(t.TempDir(), "in.csv")
	write(t, src, b.String())
	if got := said(dir, "convert", "-q", "--no-check", src, "--source-opt", "header=true", "--to", "cfile", "-o",
		filepath.Join(dir, "set")); !strings.HasSuffix(got, "status: 0") {
		t.Fatal(got)
	}
	var size int64
	for _, k := range keysOf(t, dir) {
		st, err := os.Stat(filepath.Join(dir, k))
		if err != nil {
			t.Fatal(err)
		}
		size += st.Size()
	}
	want := said(dir, "cat", "-f", "arrow", filepath.Join(dir, "set"))
	scan := func(workers int) int64 {
		var n, bytes atomic.Int64
		faults := remotetest.NewFaults(0, 1)
		faults.Latency = 20 * time.Millisecond
		s3 := faults.On(&remotetest.S3{Dir: filepath.Dir(dir), Key: testKey})
		asS3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n.Add(1)
			s3.ServeHTTP(&counted{w, &bytes}, r)
		}))
		if got := said("s3://bucket", "cat", "-f", "arrow", "--parallel", fmt.Sprint(workers),
			"s3://bucket/set"); got != want {
			t.Errorf("%d workers: other rows than on the disk", workers)
		}
		if b := bytes.Load(); b > size+size/20 {
			t.Errorf("%d workers: %d bytes arrived, the files have %d", workers, b, size)
		}
		return n.Load()
	}
	one := scan(1)
	for _, c := range []struct{ workers, most int64 }{{2, one * 4 / 3}, {4, one * 9 / 4}} {
		n := scan(int(c.workers))
		t.Logf("%d workers: %d requests, one makes %d", c.workers, n, one)
		if n > c.most {
			t.Errorf("%d workers make %d requests, want at most %d: one makes %d", c.workers, n, c.most, one)
		}
	}
}

// TestMemoryAtAddresses: --memory also limits what is kept of objects.
func TestMemoryAtAddresses(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads 240 MB")
	}
	dir := filepath.Join(t.TempDir(), "bucket")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	src, r := filepath.Join(t.TempDir(), "in.csv"), rand.New(rand.NewPCG(4, 1))
	var b strings.Builder
	b.WriteString("a,b,c\n")
	for range 800_000 {
		fmt.Fprintf(&b, "%0100x,%0100x,%0100x\n", r.Uint64(), r.Uint64(), r.Uint64())
	}
	write(t, src, b.String())
	set := filepath.Join(dir, "set")
	if got := said(dir, "convert", "-q", "--no-check", src, "--source-opt", "header=true", "--to", "cfile", "-o",
		set, "--opt", "encoding=plain", "--opt", "compression=none"); !strings.HasSuffix(got, "status: 0") {
		t.Fatal(got)
	}
	faults := remotetest.NewFaults(0, 1)
	faults.Latency = 20 * time.Millisecond
	asS3(t, faults.On(&remotetest.S3{Dir: filepath.Dir(dir), Key: testKey}))
	peak := func(args ...string) int64 {
		status, bytes, said := peakOf(t, append([]string{"cat", "-f", "arrow", "--parallel", "2"}, args...))
		if status != 0 {
			t.Fatalf("%.300s", said)
		}
		return bytes >> 20
	}
	const budget = 64
	here, far := peak(set, "--memory", "64MiB"), peak("s3://bucket/set", "--memory", "64MiB")
	t.Logf("%d MiB on the disk, %d MiB at an address", here, far)
	if far > here+2*budget {
		t.Errorf("%d MiB with a budget of %d, on the disk %d", far, budget, here)
	}
}

// counted counts the bytes of an answer.
type counted struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.n.Add(int64(n))
	return n, err
}
