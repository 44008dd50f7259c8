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

// TestRowGroupsAreRequestedWhole: a scan of all columns, or of neighbouring ones, asks for each row group once, whoever
// reads it, and gets the rows of the disk. A scan that ends early does not read the file.
func TestRowGroupsAreRequestedWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bucket")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	r := rand.New(rand.NewPCG(3, 1))
	const rows, groups = 18_000, 2
	for i := range rows {
		fmt.Fprintf(&b, "{\"a\":%d,\"b\":\"%0500x\",\"c\":\"%0500x\",\"d\":%d}\n", i, r.Uint64(), r.Uint64(), r.Int64())
	}
	src := filepath.Join(t.TempDir(), "in.jsonl")
	if err := os.WriteFile(src, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "big.parquet")
	if got := said(dir, "convert", "-q", src, "-o", file, "--opt", "compression=none", "--opt", "dictionary=false",
		"--opt", fmt.Sprint("row-group-rows=", rows/groups)); !strings.HasSuffix(got, "status: 0") {
		t.Fatal(got)
	}
	for _, c := range []struct {
		args []string
		most int64
	}{
		{[]string{"cat", "-f", "csv"}, groups + 4},
		{[]string{"cat", "-f", "csv", "--parallel", "1"}, groups + 3},
		{[]string{"cat", "-f", "csv", "--columns", "b,c"}, groups + 4},
		{[]string{"cat", "-f", "csv", "--damaged", "skip-rows"}, groups + 3},
		{[]string{"head", "-f", "csv"}, 12},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			var n atomic.Int64
			faults := remotetest.NewFaults(0, 1)
			faults.Latency = 8 * time.Millisecond
			s3 := faults.On(&remotetest.S3{Dir: filepath.Dir(dir), Key: testKey})
			asS3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.Add(1); s3.ServeHTTP(w, r) }))
			want := said(dir, append(c.args, file)...)
			if got := said("s3://bucket", append(c.args, "s3://bucket/big.parquet")...); got != want {
				t.Errorf("%v: %s", c.args, firstDifference(got, want))
			}
			if n.Load() > c.most {
				t.Errorf("%v: %d requests, want at most %d", c.args, n.Load(), c.most)
			}
		})
	}
}
