package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// asNobody runs the command as a user who owns nothing, as the modes of files do not stop root.
func asNobody(t *testing.T, args ...string) (status int, said string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.CombinedOutput()
	exit := new(exec.ExitError)
	switch {
	case errors.Is(err, os.ErrPermission):
		t.Skip("another user may not run the test's program: ", err)
	case err != nil && !errors.As(err, &exit):
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// open lets every user read what lies below a directory, and write to it.
func open(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chmod(name, 0o777)) //nolint:gosec // of a test
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRefusedIsNotDamage: what the system does not allow to be read ends every verb with 1 and is named, also if
// something else in the place is damaged: what was not read may be intact.
func TestRefusedIsNotDamage(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		files, servers := filepath.Join(t.TempDir(), "files"), filepath.Join(t.TempDir(), "servers")
		if err := os.Mkdir(files, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c"} {
			copyFile(t, filepath.Join("..", "..", "corpus", "trevni", "v1.9.1", "all_null_crc32.trv"),
				filepath.Join(files, name+".trv"))
		}
		kuduSample(t, servers)
		if damaged {
			if err := os.Truncate(filepath.Join(files, "c.trv"), 900); err != nil {
				t.Fatal(err)
			}
		}
		for place, shut := range map[string]string{files: "b.trv", servers: "data"} {
			open(t, filepath.Dir(place))
			if err := os.Chmod(filepath.Dir(filepath.Dir(place)), 0o755); err != nil { //nolint:gosec // of a test
				t.Fatal(err)
			}
			if st, said := asNobody(t, "ls", place); st != cli.StatusFine && !damaged {
				t.Skip("another user does not reach the files of the test: ", said)
			}
			if err := os.Chmod(filepath.Join(place, shut), 0); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(filepath.Join(place, shut), 0o700) }) //nolint:gosec // to remove it
			out := filepath.Join(filepath.Dir(place), "out")
			for _, verb := range []string{"ls", "verify", "verify --deep", "cat", "cat --damaged skip-rows",
				"recover -o " + out + ".jsonl", "convert -o " + out + ".csv", "convert --all -o " + out,
				"recover --all -o " + out + "2", "rescue -o " + out + "3"} {
				st, said := asNobody(t, append(strings.Fields(verb), place)...)
				if st != cli.StatusCannot || !strings.Contains(said, "permission denied") {
					t.Errorf("%s %s, damaged %t: status %d: %.600s", verb, filepath.Base(place), damaged, st, said)
				}
			}
		}
	}
}
