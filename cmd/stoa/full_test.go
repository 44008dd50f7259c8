//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/output"
)

// outputs are outputs that do not fit: with killRows rows even the smallest file exceeds 8 kB.
var outputs = []struct{ out, flags string }{
	{"out.parquet", ""}, {"out.backup", "--to kudu-backup --opt table=t --opt key=id"},
	{"out.kudu", "--to kudu-fs --opt table=t --opt key=id"},
	{"out.cfile", "--columns id --opt encoding=plain"}, {"out", "--to cfile --opt encoding=plain"},
	{"out.red", ""}, {"out.trv", "--to trevni"}, {"out.avro.trv", "--to trevni-avro"}, {"out.carbondata", ""},
	{"out.arrow", ""}, {"out.csv", ""}, {"out.tsv", ""}, {"out.jsonl", ""},
}

// TestFileLimit: if the system limits the size of files (RLIMIT_FSIZE), the error names the output, nothing is left,
// and an existing output is unchanged.
func TestFileLimit(t *testing.T) {
	dir := t.TempDir()
	withoutSpace(t, dir, "file too large", func(command string) *exec.Cmd {
		return exec.Command("sh", "-c", "ulimit -f 16; "+command)
	})
}

// TestDiskFull is the same on a file system of 32 kB.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	mounted := func(command string) *exec.Cmd {
		if os.Getuid() == 0 {
			return exec.Command("sh", "-c", command)
		}
		return exec.Command("unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=32k tmpfs "+dir+" && "+command)
	}
	if os.Getuid() == 0 {
		if b, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", dir).CombinedOutput(); err != nil {
			t.Skipf("cannot mount a small file system: %v: %s", err, b)
		}
		defer exec.Command("umount", dir).Run()
	} else if b, err := mounted("true").CombinedOutput(); err != nil {
		t.Skipf("cannot mount a small file system: %v: %s", err, b)
	}
	withoutSpace(t, dir, "no space left on device", mounted)
}

func withoutSpace(t *testing.T, dir, reason string, limited func(command string) *exec.Cmd) {
	src := killSource(t)
	list := outputs
	if testing.Short() {
		list = list[:3]
	}
	for _, o := range list {
		out := filepath.Join(dir, o.out)
		arg := out
		if !strings.Contains(o.out, ".") || strings.Contains(o.out, "backup") {
			arg += "/"
		}
		small := fmt.Sprintf("%s convert %s -o %s %s -q -n 5", os.Args[0], src, arg, o.flags)
		large := fmt.Sprintf("%s convert %s -o %s %s -q --force", os.Args[0], src, arg, o.flags)
		if strings.Contains(o.flags, "--to kudu") { // which replaces no output
			small = "true"
		}
		// The command prints the checksum of the output before and after the large conversion, its status, and the
		// files in the directory.
		sum := fmt.Sprintf("find %s -type f 2>/dev/null | sort | xargs -r cat | cksum", out)
		cmd := limited(fmt.Sprintf("%s || exit 100; %s; %s; echo status $?; %s; ls -A %s; rm -rf %s", small, sum,
			large, sum, dir, out))
		cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		got, err := cmd.Output()
		lines := strings.Split(strings.TrimSpace(string(got)), "\n")
		if err != nil || len(lines) < 3 {
			t.Errorf("%s: %v: %s%s", o.out, err, got, errs.String())
			continue
		}
		if lines[0] != lines[2] || lines[1] != "status 1" {
			t.Errorf("%s: got %q, want equal checksums and status 1", o.out, lines)
		}
		if left := strings.Join(lines[3:], " "); left != o.out && !(small == "true" && left == "") {
			t.Errorf("%s: got %s left, want the output alone", o.out, left)
		}
		if e := errs.String(); !strings.Contains(e, reason) || !strings.Contains(e, out) ||
			strings.Contains(e, "stoa-tmp") {
			t.Errorf("%s: got %q, want the output's name and %q", o.out, e, reason)
		}
	}
}

// TestFullDevice: a failed write is reported once, with the output's name, and the status is 1, regardless of the
// amount of output and of damage in the source.
func TestFullDevice(t *testing.T) {
	t.Chdir(t.TempDir())
	source := killSource(t)
	if st := run(t.Context(), []string{"demo", "try", "--damage"}, strings.NewReader(""), &bytes.Buffer{},
		&bytes.Buffer{}); st != 0 {
		t.Fatalf("demo: got status %d, want 0", st)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	args := [][]string{
		{"ls", "try"}, {"verify", "try/damaged"}, {"count", source}, {"--help"}, {"schema", source, "-f", "json"},
		{"describe", "try/flat.red", "--pages"},
		{"convert", source, "-o", "-", "--to", "parquet"},
		{"convert", source, "-o", "-", "--to", "cfile", "--columns", "id"}, {"finding"},
		{"cat", "try/damaged/key.cfile", "--damaged", "skip-rows", "-q", "--manifest", "lost.json"},
		{"recover", "try/damaged/key.cfile", "-o", "-", "--to", "csv", "-q", "--manifest", "lost.json"},
	}
	for _, form := range output.RowForms {
		args = append(args, []string{"cat", source, "-f", form}, []string{"cat", "try/key.cfile", "-f", form},
			[]string{"cat", source, "-f", form, "-o", "/dev/full"})
	}
	for _, a := range args {
		cmd := exec.Command(os.Args[0], a...)
		cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
		var errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &errs
		name := "/dev/stdout"
		if a[len(a)-1] == "/dev/full" {
			name = "/dev/full"
		}
		err := cmd.Run()
		if want := "stoa: write " + name + ": no space left on device\n"; errs.String() != want ||
			cmd.ProcessState.ExitCode() != cli.StatusCannot {
			t.Errorf("%q: got %v, %q, want %q", a, err, &errs, want)
		}
	}
}
