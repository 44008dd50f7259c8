package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stoa/cmd/stoa/internal/cli"
)

func init() { inTerminal = leaveBrowse }

// terminal is a pseudo-terminal of 80 x 24 with a program in it, and all that the program has written to it.
type terminal struct {
	t           *testing.T
	master, tty *os.File
	cmd         *exec.Cmd
	before      unix.Termios
	mu          sync.Mutex
	out         bytes.Buffer
	read        chan struct{}
}

// newTerminal runs stoa in a terminal.
func newTerminal(t *testing.T, dir string, args ...string) *terminal {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	fail(err)
	fail(unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	fail(err)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	fail(err)
	fail(unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	x := &terminal{t: t, master: master, tty: tty, read: make(chan struct{})}
	before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	fail(err)
	x.before = *before
	x.cmd = exec.Command(os.Args[0], args...)
	x.cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1", "TERM=xterm-256color")
	x.cmd.Dir, x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = dir, tty, tty, tty
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	fail(x.cmd.Start())
	go func() {
		defer close(x.read)
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			x.mu.Lock()
			x.out.Write(b[:n])
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { x.cmd.Process.Kill(); tty.Close(); master.Close() })
	return x
}

func (x *terminal) output() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out.String()
}

var sequences = regexp.MustCompile("\x1b(\\[[0-9;?]*[ -/]*[@-~]|\\([AB0]|[=>78])")

// waits until text, without commands to the terminal, has been written.
func (x *terminal) waits(text string) {
	x.t.Helper()
	x.waitsFor(text, func(out string) bool { return strings.Contains(sequences.ReplaceAllString(out, ""), text) })
}

func (x *terminal) waitsFor(what string, is func(out string) bool) {
	x.t.Helper()
	for end := time.Now().Add(time.Minute); !is(x.output()); {
		if time.Now().After(end) {
			x.t.Fatalf("%q is not on the screen: %q", what, x.output())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// ended waits for the end of the program, and checks that the terminal is as before: its modes, the screen and the
// cursor.
func (x *terminal) ended(status int) {
	x.t.Helper()
	end := time.AfterFunc(time.Minute, func() { x.cmd.Process.Kill() })
	x.cmd.Wait()
	end.Stop()
	time.Sleep(50 * time.Millisecond) // the last bytes
	after, err := unix.IoctlGetTermios(int(x.tty.Fd()), unix.TCGETS)
	if err != nil {
		x.t.Fatal(err)
	}
	if *after != x.before {
		x.t.Errorf("the modes of the terminal: %+v, before: %+v", *after, x.before)
	}
	out := x.output()
	if strings.LastIndex(out, "\x1b[?1049l") <= strings.LastIndex(out, "\x1b[?1049h") {
		x.t.Errorf("the other screen was not left: %q", out)
	}
	if strings.LastIndex(out, "\x1b[?25l") > strings.LastIndex(out, "\x1b[?25h") {
		x.t.Errorf("the cursor is hidden: %q", out)
	}
	if got := x.cmd.ProcessState.ExitCode(); got != status {
		x.t.Errorf("status %d, want %d: %q", got, status, out)
	}
}

// leaveBrowse runs browse in a terminal until it shows something, and leaves it by Ctrl-C.
func leaveBrowse(t *testing.T, dir string, args []string) {
	x := newTerminal(t, dir, args...)
	x.waits("? keys")
	x.master.WriteString("\x03")
	x.ended(cli.StatusFine)
}

// TestBrowseLeavesTheTerminal: however browse ends, over healthy and damaged files, the terminal is as before.
func TestBrowseLeavesTheTerminal(t *testing.T) {
	dir := t.TempDir()
	must(t, "demo", filepath.Join(dir, "demo"), "--damage")
	for _, c := range []struct {
		file   string
		end    func(x *terminal)
		status int
	}{
		{"demo/flat.red", func(x *terminal) { x.master.WriteString("\x03") }, cli.StatusFine},
		{"demo/damaged/key.cfile", func(x *terminal) { x.master.WriteString("4\x03") }, cli.StatusFine},
		{"demo/damaged/cut.cfile", func(x *terminal) { x.master.WriteString("3\r\r4q\x03") }, cli.StatusFine},
		{"demo", func(x *terminal) { x.master.WriteString("q") }, cli.StatusFine},
		{"demo/flat.red", func(x *terminal) { x.cmd.Process.Signal(syscall.SIGTERM) }, cli.StatusStopped},
		{"demo/flat.red", func(x *terminal) { x.cmd.Process.Signal(syscall.SIGINT) }, cli.StatusStopped},
	} {
		x := newTerminal(t, dir, "browse", c.file)
		x.waits("? keys")
		c.end(x)
		x.ended(c.status)
	}
}

// TestWarningsHaveColour: what standard error says of damage has the colours of its severity, unless NO_COLOR is set.
func TestWarningsHaveColour(t *testing.T) {
	dir := t.TempDir()
	must(t, "demo", filepath.Join(dir, "demo"))
	for _, plain := range []string{"", "1"} {
		t.Setenv("NO_COLOR", plain)
		x := newTerminal(t, dir, "count", "demo/kudu")
		x.waits("1619")
		x.waits("kudu.wal.missing")
		if got := strings.Contains(x.output(), "\x1b[33mwarning\x1b[0m kudu.wal.missing"); got != (plain == "") {
			t.Errorf("NO_COLOR=%q: printed %q", plain, x.output())
		}
	}
}

// TestWorkIsShown: verbs that take over a second show on a terminal how much they have read, until they print
// something. The source is a pipe that stops in the middle.
func TestWorkIsShown(t *testing.T) {
	t.Setenv("PAGER", "cat")
	for verb, out := range map[string]string{"count": "2000", "stats": "column", "verify": "healthy", "tail": "1999",
		"convert -o x.parquet": "2,000 rows", "cat -o x.csv": "", "head --sample 1": "x"} {
		t.Run(strings.Fields(verb)[0], func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			pipe := filepath.Join(dir, "pipe")
			if err := unix.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			x := newTerminal(t, dir, append(strings.Fields(verb), "pipe", "--from", "csv")...)
			w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(w, "x")
			for i := range 2000 {
				fmt.Fprintln(w, i)
				if i == 1000 {
					x.waits("0:01")
				}
			}
			w.Close()
			x.cmd.Wait()
			x.waits(out)
			x.waitsFor("a line that is removed", func(out string) bool {
				return !strings.Contains(out[strings.LastIndex(out, "\r\x1b[K"):], "0:0")
			})
			if x.cmd.ProcessState.ExitCode() != 0 {
				t.Errorf("status %d: %q", x.cmd.ProcessState.ExitCode(), x.output())
			}
		})
	}
	x := newTerminal(t, t.TempDir(), "count", "-", "--from", "csv", "--no-progress")
	time.Sleep(1500 * time.Millisecond)
	x.master.WriteString("x\n1\n\x04")
	if x.cmd.Wait(); strings.Contains(x.output(), "0:01") {
		t.Errorf("--no-progress shows %q", x.output())
	}
}

// TestNothingOfAFileIsACommand: values and names of columns and files with commands to a terminal reach none of them.
func TestNothingOfAFileIsACommand(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"title": "\x1b]0;owned", "answer": "\x1b[6n", "device": "\x1bP1;1|",
		"c1": "\u009b6n"} {
		in := filepath.Join(dir, "in.jsonl")
		quoted := strings.ReplaceAll(strings.ReplaceAll(text, "\x1b", `\u001b`), "\u009b", `\u009b`)
		rows := strings.Repeat(`{"mark`+quoted+`":"v`+quoted+`"}`+"\n", 3)
		if err := os.WriteFile(in, []byte(rows), 0o644); err != nil {
			t.Fatal(err)
		}
		file := "x" + text + ".parquet"
		must(t, "convert", in, "-o", filepath.Join(dir, file))
		x := newTerminal(t, dir, "browse", file)
		x.waits("mark")
		for _, keys := range []string{"\r", "\r", "\x7f", "\x7f", "2", "\r", "\x7f", "3", "\r", "\x7f", "4", "?"} {
			x.master.WriteString(keys)
			time.Sleep(60 * time.Millisecond)
		}
		x.master.WriteString("\x03")
		x.ended(cli.StatusFine)
		if out := x.output(); strings.Contains(out, text) {
			t.Errorf("%s: the terminal got %q", name, out)
		}
	}
}

// TestBrowseNeedsATerminal: without one it says so, and what to use.
func TestBrowseNeedsATerminal(t *testing.T) {
	var out, errs bytes.Buffer
	st := run(context.Background(), []string{"browse", "."}, strings.NewReader(""), &out, &errs)
	if st != cli.StatusUse || !strings.Contains(errs.String(), "stoa serve") || out.Len() > 0 {
		t.Errorf("status %d: %s%s", st, &out, &errs)
	}
}
