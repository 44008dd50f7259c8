package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestRunningServer runs a script in which the test holds locks, as a running server does:
//
//	hold FILE    locks a file until the end of the script
func TestRunningServer(t *testing.T) {
	dirs, err := filepath.Abs("../../format/kudu/testdata")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               []string{"testdata/lock.txtar"},
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("KUDUDIR", dirs)
			return os.CopyFS(filepath.Join(e.WorkDir, "server"), os.DirFS(filepath.Join(dirs, "file")))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": exitStatus,
			"hold": func(ts *testscript.TestScript, _ bool, args []string) {
				f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_RDWR, 0)
				ts.Check(err)
				ts.Defer(func() { f.Close() })
				ts.Check(syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}))
			}},
	})
}
