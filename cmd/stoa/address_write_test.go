package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/cli"
	"stoa/store/remote/remotetest"
)

// keysOf returns the files below a directory.
func keysOf(t *testing.T, dir string) (keys []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, name)
			keys = append(keys, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// emptyBucket returns an S3 server with an empty bucket.
func emptyBucket(t *testing.T) (s *remotetest.S3, dir string) {
	t.Helper()
	s = &remotetest.S3{Dir: t.TempDir(), Key: testKey}
	dir = filepath.Join(s.Dir, "bucket")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return s, dir
}

// TestWritesToAddresses: output at an address equals the output in a file of that name, and there is nothing else, in
// every format, even if one in twenty requests fails.
func TestWritesToAddresses(t *testing.T) {
	src := "../../corpus/trevni/v1.12.2/avro_primitives.trv"
	flat := filepath.Join(t.TempDir(), "flat.csv")
	if err := os.WriteFile(flat, []byte("a,b\n1,x\n2,y\n3,z\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ src, to string }{{src, "out.parquet"}, {src, "out.csv"}, {src, "a/b/out.arrow"},
		{src, "out.trv"}, {flat, "out.red"}, {flat, "set/ --to cfile"}, {flat, "sdk/ --to carbon"},
		{flat, "out.carbondata"}, {flat, "lake/ --to iceberg"}, {flat, "w/t/ --to delta --partition-by b"},
		{flat, "both/ --to iceberg,delta"}} {
		s3, dir := emptyBucket(t)
		faults := remotetest.NewFaults(0.05, uint64(i))
		asS3(t, faults.On(s3))
		local := t.TempDir()
		name, flags, _ := strings.Cut(c.to, " ")
		if err := os.MkdirAll(filepath.Dir(filepath.Join(local, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"convert", "-q", c.src}, strings.Fields(flags)...)
		want := said(local, append(args, "-o", local+"/"+name)...)
		got := said("s3://bucket", append(args, "-o", "s3://bucket/"+name)...)
		if got != want || !strings.HasSuffix(got, "status: 0") {
			t.Errorf("%s: %s\nwant %s", c.to, got, want)
			continue
		}
		cat := []string{"cat", "-f", "jsonl"}
		if strings.Contains(flags, "iceberg,") { // two tables are there
			cat = append(cat, "--from", "delta")
		}
		rows := said(local, append(cat, local+"/"+name)...)
		if got := said("s3://bucket", append(cat, "s3://bucket/"+name)...); got != rows {
			t.Errorf("%s: %s", c.to, firstDifference(got, rows))
		}
		if got, want := len(keysOf(t, dir)), len(keysOf(t, local)); got != want || s3.Uploads() > 0 {
			t.Errorf("%s: there are %d objects, want %d, and %d uploads: %q", c.to, got, want, s3.Uploads(),
				keysOf(t, dir))
		}
	}
}

// noise returns a file of incompressible rows, of about n bytes.
func noise(t *testing.T, n int) string {
	t.Helper()
	r := rand.New(rand.NewPCG(22, 22))
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, "{\"a\":%d,\"b\":\"%x%x\"}\n", r.Int64(), r.Uint64(), r.Uint64())
	}
	name := filepath.Join(t.TempDir(), "noise.jsonl")
	if err := os.WriteFile(name, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestLargeObjects: an object that is uploaded in parts is complete, whatever fails on the way, or does not exist, and
// neither does an upload.
func TestLargeObjects(t *testing.T) {
	src := noise(t, 20<<20)
	want, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	for _, share := range []float64{0, 0.1, 0.9} {
		s3, dir := emptyBucket(t)
		faults := remotetest.NewFaults(share, 7)
		faults.Kinds = []string{"500", "503", "reset", "cut"}
		asS3(t, faults.On(s3))
		got := said("s3://bucket", "convert", src, "-q", "-o", "s3://bucket/out.jsonl", "--no-check")
		keys := keysOf(t, dir)
		if strings.HasSuffix(got, "status: 0") {
			b, err := os.ReadFile(filepath.Join(dir, "out.jsonl"))
			if err != nil || !bytes.Equal(b, want) || len(keys) != 1 {
				t.Errorf("%v fail: the object is not what was written: %d bytes, %v; %q", share, len(b), err, keys)
			}
		} else if share < 0.5 || len(keys) > 0 || !strings.Contains(got, "BUCKET/out.jsonl") {
			t.Errorf("%v fail: %s; %q", share, got, keys)
		}
		if share < 0.5 && s3.Uploads() > 0 {
			t.Errorf("%v fail: %d uploads are left", share, s3.Uploads())
		}
	}
}

// TestRefusedObject: if a store refuses a part in the middle, nothing is left.
func TestRefusedObject(t *testing.T) {
	src := noise(t, 20<<20)
	s3, dir := emptyBucket(t)
	asS3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("partNumber") == "2" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s3.ServeHTTP(w, r)
	}))
	got := said("s3://bucket", "convert", src, "-q", "-o", "s3://bucket/out.jsonl")
	if !strings.HasSuffix(got, "status: 1") || !strings.Contains(got, "BUCKET/out.jsonl") {
		t.Error(got)
	}
	if keys := keysOf(t, dir); len(keys) > 0 || s3.Uploads() > 0 {
		t.Errorf("%q and %d uploads are left", keys, s3.Uploads())
	}
}

// TestKilledUpload: a process that is killed while it uploads leaves an invisible upload, which clean removes; one that
// is asked to end leaves nothing.
func TestKilledUpload(t *testing.T) {
	src := noise(t, 20<<20)
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		s3, dir := emptyBucket(t)
		second := make(chan struct{}, 16)
		slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("partNumber") == "2" {
				select {
				case second <- struct{}{}:
				default:
				}
				io.Copy(io.Discard, r.Body) // so that the server notices when the process is gone
				<-r.Context().Done()
				return
			}
			s3.ServeHTTP(w, r)
		})
		asS3(t, slow)
		cmd := exec.Command(os.Args[0], "convert", src, "-q", "-o", "s3://bucket/out.jsonl")
		cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1", "TMPDIR="+t.TempDir())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-second
		time.Sleep(100 * time.Millisecond) // for the first part
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		keys, left := keysOf(t, dir), s3.Uploads()
		if len(keys) > 0 || sig == syscall.SIGTERM && left > 0 || sig == syscall.SIGKILL && left != 1 {
			t.Errorf("%s: %q are there, and %d uploads", sig, keys, left)
		}
		if sig == syscall.SIGTERM {
			continue
		}
		asS3(t, s3)
		if got := said("s3://bucket", "clean", "s3://bucket/"); s3.Uploads() != 1 {
			t.Errorf("one that may be at work is removed: %s", got)
		}
		got := said("s3://bucket", "clean", "s3://bucket/", "--older-than", "-1m", "--dry-run")
		if s3.Uploads() != 1 || !strings.Contains(got, "BUCKET/out.jsonl") {
			t.Error(got)
		}
		if got := said("s3://bucket", "clean", "s3://bucket/", "--older-than", "-1m"); s3.Uploads() > 0 {
			t.Error(got)
		}
	}
}

// TestCutDirectory: a directory in which some objects have not appeared is refused by readers, and clean removes it; a
// complete one is intact after clean.
func TestCutDirectory(t *testing.T) {
	flat := filepath.Join(t.TempDir(), "flat.csv")
	if err := os.WriteFile(flat, []byte("a,b,c\n1,x,1\n2,y,2\n3,z,3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for after := 1; after <= 6; after++ {
		s3, dir := emptyBucket(t)
		var puts atomic.Int64 // what is given up may still arrive beside what is tried again
		asS3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut || r.Method == http.MethodDelete {
				if puts.Add(1) > int64(after) {
					panic(http.ErrAbortHandler) // the server is gone for writers
				}
			}
			s3.ServeHTTP(w, r)
		}))
		cli.RemoteOptions.Tries = 2
		cli.RemoteOptions.AtATime = 1
		got := said("s3://bucket", "convert", flat, "-q", "--to", "cfile", "-o", "s3://bucket/set/")
		if !strings.HasSuffix(got, "status: 1") {
			t.Errorf("after %d writes: %s", after, got)
		}
		asS3(t, s3)
		if len(keysOf(t, dir)) > 0 {
			for _, verb := range []string{"cat", "count", "verify", "ls", "schema"} {
				if got := said("s3://bucket", verb, "s3://bucket/set"); !strings.HasSuffix(got, "status: 1") ||
					!strings.Contains(got, "stoa clean") {
					t.Errorf("after %d writes: %s: %s", after, verb, got)
				}
			}
			if got := said("s3://bucket", "convert", flat, "-q", "--to", "cfile", "-o", "s3://bucket/set/"); !strings.
				HasSuffix(got, "status: 1") {
				t.Errorf("it is written into: %s", got)
			}
		}
		got = said("s3://bucket", "clean", "s3://bucket/set", "--older-than", "-1m")
		rows := said("s3://bucket", "count", "s3://bucket/set")
		if keys := keysOf(t, dir); len(keys) != 0 && !strings.HasPrefix(rows, "3\n") {
			t.Errorf("after %d writes, and clean, %q are there; count says %s; %s", after, keys, rows, got)
		}
	}
}

// TestStoreWithoutConditions: a store that ignores conditions is detected, and only written to if the user states that
// nobody else writes.
func TestStoreWithoutConditions(t *testing.T) {
	flat := filepath.Join(t.TempDir(), "flat.csv")
	if err := os.WriteFile(flat, []byte("a,b\n1,x\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	s3, dir := emptyBucket(t)
	s3.IgnoreConditions = true
	asS3(t, s3)
	args := []string{"convert", flat, "--to", "cfile", "-o", "s3://bucket/set/"}
	if got := said("s3://bucket", args...); !strings.HasSuffix(got, "status: 1") ||
		!strings.Contains(got, "--assume-single-writer") || len(keysOf(t, dir)) > 0 {
		t.Error(got, keysOf(t, dir))
	}
	if got := said("s3://bucket", append(args, "--assume-single-writer")...); !strings.HasSuffix(got, "status: 0") ||
		len(keysOf(t, dir)) != 3 {
		t.Error(got, keysOf(t, dir))
	}
}

// TestAllToAddresses: convert --all, also resumed, recover and seal write to addresses.
func TestAllToAddresses(t *testing.T) {
	s3, dir := emptyBucket(t)
	asS3(t, s3)
	src := "../../corpus/carbon/2.3.0/managed"
	args := []string{"convert", "--all", src, "-q", "-f", "json", "-o", "s3://bucket/all/"}
	got := said("s3://bucket", args...)
	if !strings.HasSuffix(got, "status: 0") || !strings.Contains(got, "BUCKET/all/managed_part") {
		t.Error(got)
	}
	n := 0
	for line := range strings.Lines(got) {
		var d struct {
			Output   string
			Rows     int64
			Readback struct{ Verdict string } `json:"read_back"`
		}
		if json.Unmarshal([]byte(line), &d) != nil || d.Output == "" {
			continue
		}
		if n++; d.Readback.Verdict != "equal" {
			t.Errorf("%s: %s", d.Output, d.Readback.Verdict)
		}
	}
	before := keysOf(t, dir)
	if n < 10 || !slices.Contains(before, "all/.stoa-convert.json") {
		t.Errorf("%d tables are reported, and there are %q", n, before)
	}
	if got := said("s3://bucket", args...); !strings.HasSuffix(got, "status: 2") {
		t.Errorf("without --resume: %s", got)
	}
	if err := os.Remove(filepath.Join(dir, "all", "managed1.parquet")); err != nil {
		t.Fatal(err)
	}
	got = said("s3://bucket", append(args, "--resume")...)
	if after := keysOf(t, dir); !strings.HasSuffix(got, "status: 0") || !slices.Equal(after, before) {
		t.Errorf("%s: %q are there, want %q", got, after, before)
	}
	if got := said("s3://bucket", "recover", src+"/managed1.expected.jsonl.gz", "-q", "-o",
		"s3://bucket/saved.parquet"); !strings.HasSuffix(got, "status: 0") {
		t.Error(got)
	}
	if got := said("s3://bucket", "seal", src, "-q", "-o", "s3://bucket/m.seal"); !strings.HasSuffix(got, "status: 0") {
		t.Error(got)
	}
}

// TestObjectsAreNotReplaced: an object is replaced only with --force, or after a question, and not if the store does
// not say whether there is one.
func TestObjectsAreNotReplaced(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("n.csv", []byte("1,2\n3,4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s3, dir := emptyBucket(t)
	asS3(t, s3)
	object := filepath.Join(dir, "out.csv")
	write := func(words string) {
		t.Helper()
		if err := os.WriteFile(object, []byte(words), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want string) {
		t.Helper()
		if b, err := os.ReadFile(object); err != nil || string(b) != want {
			t.Errorf("the object is %q, expected %q (%v)", b, want, err)
		}
	}
	for _, args := range [][]string{{"convert", "n.csv"}, {"cat", "n.csv"}, {"seal", "n.csv"}, {"recover", "n.csv"}} {
		write("precious")
		args = append(args, "-o", "s3://bucket/out.csv")
		got := said("s3://bucket", args...)
		if !strings.Contains(got, "BUCKET/out.csv exists") || !strings.Contains(got, "--force") ||
			!strings.HasSuffix(got, "status: 2") {
			t.Errorf("%v: %s", args, got)
		}
		is("precious")
		if got := said("s3://bucket", append(args, "--force")...); !strings.HasSuffix(got, "status: 0") {
			t.Errorf("%v --force: %s", args, got)
		}
		if b, err := os.ReadFile(object); err != nil || string(b) == "precious" {
			t.Errorf("%v --force: the object is %q (%v)", args, b, err)
		}
		os.Remove(object)
		if got := said("s3://bucket", args...); !strings.HasSuffix(got, "status: 0") {
			t.Errorf("%v: there is no object: %s", args, got)
		}
	}
	write("precious")
	asS3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead { // a bucket to which one may only write
			w.WriteHeader(http.StatusForbidden)
			return
		}
		s3.ServeHTTP(w, r)
	}))
	got := said("s3://bucket", "convert", "n.csv", "-o", "s3://bucket/out.csv")
	if !strings.Contains(got, "whether BUCKET/out.csv exists cannot be found out") ||
		!strings.HasSuffix(got, "status: 1") {
		t.Error(got)
	}
	is("precious")
	if got := said("s3://bucket", "convert", "n.csv", "-o", "s3://bucket/out.csv", "--force"); !strings.HasSuffix(got,
		"status: 0") {
		t.Error(got)
	}
}
