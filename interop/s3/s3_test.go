//go:build interop

package s3

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// gateway is a versitygw over a directory.
type gateway struct {
	t    *testing.T
	dir  string // of the bucket
	env  []string
	stoa string

	endpoint string
}

// start starts versitygw with flags of its posix back end, and builds the command.
func start(t *testing.T, flags ...string) *gateway {
	t.Helper()
	where, err := exec.Command("./get.sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{t: t, stoa: filepath.Join(t.TempDir(), "stoa")}
	if out, err := exec.Command("go", "build", "-o", g.stoa, "stoa/cmd/stoa").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	root := t.TempDir()
	g.dir = filepath.Join(root, "bucket")
	if err := os.Mkdir(g.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	args := append(append([]string{"--port", address, "posix"}, flags...), root)
	server := exec.Command(filepath.Join(strings.TrimSpace(string(where)), "versitygw"), args...)
	server.Env = append(os.Environ(), "ROOT_ACCESS_KEY=key", "ROOT_SECRET_KEY=secretsecret")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	for range 100 {
		c, err := net.Dial("tcp", address)
		if err == nil {
			c.Close()
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	g.endpoint = "http://" + address
	g.env = append(os.Environ(), "AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=secretsecret", "AWS_REGION=us-east-1",
		"AWS_ENDPOINT_URL_S3="+g.endpoint, "AWS_EC2_METADATA_DISABLED=true", "AWS_PROFILE=")
	return g
}

func (g *gateway) command(args ...string) *exec.Cmd {
	c := exec.Command(g.stoa, args...)
	c.Env = g.env
	return c
}

// run runs the command, and returns its output and its status.
func (g *gateway) run(args ...string) (said string, status int) {
	c := g.command(args...)
	out, err := c.CombinedOutput()
	if err != nil && c.ProcessState == nil {
		g.t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// files returns the names and contents below a directory, except the server's own files.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		b, err := os.ReadFile(name)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// rows returns an incompressible text of about n bytes.
func rows(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, "{\"a\":%d,\"b\":\"%x%x\"}\n", r.Int64(), r.Uint64(), r.Uint64())
	}
	return b.Bytes()
}

// TestWrites: what the server then has in its directory is what stoa writes to a local one: objects of one part
// and of several, and directories.
func TestWrites(t *testing.T) {
	g := start(t)
	local := t.TempDir()
	large := filepath.Join(t.TempDir(), "large.jsonl")
	if err := os.WriteFile(large, rows(30<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	judged := 0
	for _, c := range [][]string{{large, "large.jsonl"}, {large, "a/large.parquet", "--opt", "compression=none"},
		{large, "set/", "--to", "cfile"}, {large, "large.arrow"}, {large, "small.csv", "-n", "10"}} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(local, c[1])), 0o777); err != nil {
			t.Fatal(err)
		}
		for _, place := range []string{local + "/", "s3://bucket/"} {
			args := append([]string{"convert", "-q", c[0], "-o", place + c[1]}, c[2:]...)
			if said, status := g.run(args...); status != 0 {
				t.Fatalf("%v: status %d: %s", args, status, said)
			}
		}
		judged++
	}
	want, got := files(t, local), files(t, g.dir)
	for name, b := range want {
		if got[name] != b {
			t.Errorf("%s: the server has %d bytes, want %d, or others", name, len(got[name]), len(b))
		}
	}
	if len(got) != len(want) {
		t.Errorf("the server has %d files, want %d", len(got), len(want))
	}
	if said, status := g.run("convert", "-q", large, "--to", "cfile", "-o", "s3://bucket/set/"); status != 1 {
		t.Errorf("a directory is written over: status %d: %s", status, said)
	}
	t.Logf("COUNT objects of %[2]d places written to versitygw and compared with files: %[1]d", len(got), judged)
}

// TestKilled: a process that is killed in the middle of an upload leaves nothing visible, and clean removes the rest.
func TestKilled(t *testing.T) {
	g := start(t)
	c := g.command("convert", "-", "--from", "jsonl", "-q", "-o", "s3://bucket/out.jsonl")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	go io.Copy(in, bytes.NewReader(rows(40<<20))) // and more is waited for
	uploads := func() int { return len(files(t, g.dir)) }
	for i := 0; uploads() == 0 && i < 600; i++ {
		time.Sleep(100 * time.Millisecond)
	}
	if uploads() == 0 {
		t.Fatal("no part came")
	}
	c.Process.Kill()
	c.Wait()
	if said, status := g.run("ls", "s3://bucket/"); strings.Contains(said, "out.jsonl") {
		t.Errorf("it is visible: status %d: %s", status, said)
	}
	said, status := g.run("clean", "s3://bucket/", "--older-than", "-1m")
	if status != 0 || !strings.Contains(said, "s3://bucket/out.jsonl") || uploads() > 0 {
		t.Errorf("status %d, %d files are left: %s", status, uploads(), said)
	}
	t.Logf("COUNT uploads of killed processes that clean removed: 1")
}

// TestIgnoredConditions: without its metadata, versitygw accepts the second of two exclusive writes: this is noticed.
func TestIgnoredConditions(t *testing.T) {
	g := start(t, "--nometa")
	src := filepath.Join(t.TempDir(), "a.jsonl")
	if err := os.WriteFile(src, []byte("{\"a\":1,\"b\":2}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	args := []string{"convert", src, "--to", "cfile", "-o", "s3://bucket/set/"}
	said, status := g.run(args...)
	if status != 1 || !strings.Contains(said, "--assume-single-writer") || len(files(t, g.dir)) > 0 {
		t.Errorf("status %d: %s", status, said)
	}
	if said, status := g.run(append(args, "--assume-single-writer")...); status != 0 || len(files(t, g.dir)) != 3 {
		t.Errorf("status %d: %s", status, said)
	}
	t.Logf("%s: noticed: a store that ignores If-None-Match", "nometa")
	t.Logf("COUNT stores that ignore conditions and were found out: 1")
}
