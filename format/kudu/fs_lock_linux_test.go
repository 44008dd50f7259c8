package kudu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/fs"
	"stoa/store"
)

// lockVar is the environment variable with the file that TestLockHelper locks.
const lockVar = "STOA_TEST_LOCK"

// TestLockHelper acts as a server that holds the lock, in a separate process.
func TestLockHelper(t *testing.T) {
	name := os.Getenv(lockVar)
	if name == "" {
		t.Skip("only run by TestLock")
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("locked\n")
	io.Copy(io.Discard, os.Stdin)
}

// A server that runs on the directory is recognized by its lock, until it ends.
func TestLock(t *testing.T) {
	dir := t.TempDir()
	for name, b := range loadTree(t, "testdata/log", dir) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	instance := filepath.Join(dir, "data", "data", fs.DirInstanceFile)
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockHelper$")
	cmd.Env = append(os.Environ(), lockVar+"="+instance)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("%q, %v", line, err)
	}
	for _, tree := range []store.Tree{store.Local{}, store.NewCounter(store.Local{})} {
		if f := openOne(t, tree, dir); len(f.Users) != 1 ||
			f.Users[0] != (fs.User{Object: instance, PID: cmd.Process.Pid}) {
			t.Errorf("users %v", f.Users)
		}
	}
	ls, err := fs.FindServers(context.Background(), store.NewCache(store.Local{}, 1<<20), dir, fs.FSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if f, err := fs.OpenFS(context.Background(), store.NewCache(store.Local{}, 1<<20), ls[0],
		fs.FSOptions{Locked: fs.LockHolder}); err != nil || len(f.Users) != 1 {
		t.Errorf("%v", err)
	}
	target := format.Target{Tree: store.NewCache(store.Local{}, 1<<20), Name: dir, Table: "default.one"}
	if _, err := open(context.Background(), target, format.OpenOptions{}); !errors.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), fmt.Sprint(cmd.Process.Pid)) {
		t.Errorf("opened under a running server: %v", err)
	}
	if _, err := open(context.Background(), target,
		format.OpenOptions{Opts: map[string]string{"live": "true"}}); errors.Is(err, fault.Invalid) &&
		strings.Contains(err.Error(), "runs on") {
		t.Errorf("live: %v", err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if f := openOne(t, store.Local{}, dir); len(f.Users) != 0 {
		t.Errorf("users %v", f.Users)
	}
	if _, _, err := fs.LockHolder(filepath.Join(dir, "nothing")); err == nil {
		t.Error("no such file, and no error")
	}
}
