package companion

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// hogs has how many MB of memory a program of the tests takes before it ends.
const hogs = "STOA_TEST_HOGS"

func TestMain(m *testing.M) {
	switch os.Getenv(hogs) {
	case "":
		os.Exit(m.Run())
	case "0":
		return
	}
	var all [][]byte
	for len(all) < 4096 {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
	}
	runtime.KeepAlive(all)
}

// TestQueryIsBounded: a query that takes more memory than it may ends with a reason, long before it has all that it
// wants; another one is not touched.
func TestQueryIsBounded(t *testing.T) {
	if resident(os.Getpid()) == 0 {
		t.Skip("the system does not tell how much memory a process has")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, SQL)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	before := mostResident
	mostResident = 200 << 20
	t.Cleanup(func() { mostResident = before })
	for mb, want := range map[string]int{"0": cli.StatusFine, "4096": cli.StatusCannot} {
		t.Setenv(hogs, mb)
		var out, notes bytes.Buffer
		st := Query(t.Context(), nil, "select 1", "json", &out, &notes)
		if st != want || strings.Contains(notes.String(), "more than 200 MiB of memory") != (want != cli.StatusFine) {
			t.Errorf("%s MB: got status %d, %q; want %d", mb, st, &notes, want)
		}
	}
}
