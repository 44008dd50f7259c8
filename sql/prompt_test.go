package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"stoa"
	"stoa/cmd/stoa/verbs"
)

// A terminal is a pseudo-terminal with a program on it.
type terminal struct {
	t      *testing.T
	master *os.File
	c      *exec.Cmd
	mu     sync.Mutex
	shown  strings.Builder // everything written to it
	from   int             // where the next wait starts
}

func ioctl(t *testing.T, f *os.File, request uintptr, p unsafe.Pointer) {
	t.Helper()
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(p)); e != 0 {
		t.Fatal(e)
	}
}

// onTerminal runs a program on a terminal of 100 by 40 characters.
func onTerminal(t *testing.T, c *exec.Cmd) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	var number, unlocked int32
	ioctl(t, master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlocked))
	ioctl(t, master, syscall.TIOCGPTN, unsafe.Pointer(&number))
	ioctl(t, master, syscall.TIOCSWINSZ, unsafe.Pointer(&[4]uint16{40, 100}))
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	c.Env = append(c.Env, "TERM=xterm")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, master: master, c: c}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			x.mu.Lock()
			x.shown.Write(b[:n])
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { c.Process.Kill(); master.Close() })
	return x
}

// types types keys, waits until the new output matches the pattern, and returns the output until then.
func (x *terminal) types(keys, pattern string) string {
	x.t.Helper()
	x.mu.Lock()
	x.from = x.shown.Len()
	x.mu.Unlock()
	if _, err := x.master.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
	return x.waits(pattern)
}

func (x *terminal) waits(pattern string) string {
	x.t.Helper()
	re := regexp.MustCompile(pattern)
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		x.mu.Lock()
		since := x.shown.String()[x.from:]
		x.mu.Unlock()
		if re.MatchString(since) {
			return since
		}
		if time.Since(begin) > 60*time.Second {
			x.t.Fatalf("%s was not shown; what was: %q", pattern, since)
		}
	}
}

// TestPrompt: the dialogue on a terminal: statements, commands, completion, history, interrupts, progress, the end.
func TestPrompt(t *testing.T) {
	dir := programs(t)
	if status, err := verbs.Run(stoa.Session(t.Context()), []string{"demo", filepath.Join(dir, "try")},
		strings.NewReader(""), io.Discard, io.Discard); status != 0 {
		t.Fatal(err)
	}
	prompt := func() *terminal {
		c := command(dir, "stoa", "sql", "-i", "--table", "keys=try/key.cfile")
		c.Dir = dir
		x := onTerminal(t, c)
		x.waits(`stoa> `)
		return x
	}
	x := prompt()
	x.types("SELECT 41 + 1 AS\r", `\.\.\.> `)
	x.types("answer;\r", `(?s)answer.*42.*stoa> `)
	x.types(".tables\r", `(?s)keys.*stoa> `)
	x.types(".schema keys\r", `(?s)value.*INTEGER.*stoa> `)
	x.types(".schema try/flat.red\r", `(?s)BIGINT.*stoa> `)
	x.types(".mode csv\r", `stoa> `)
	x.types("SELECT 1 AS a, 'x,y' AS b;\r", `(?s)a,b\r\n1,"x,y"\r\n.*stoa> `)
	x.types(".mode nonsense\r", `(?s)nonsense.*stoa> `)
	x.types(".timing on\r", `stoa> `)
	x.types("SELECT 7 AS n;\r", `(?s)7.*[0-9]+(ms|s)\r\n.*stoa> `)
	x.types(".timing off\r", `stoa> `)
	x.types("SELECT nothing;\r", `(?s)Binder Error.*stoa> `)
	x.types(".nonsense\r", `(?s)\.help lists them.*stoa> `)
	x.types(".help\r", `(?s)completes.*stoa> `)
	// Completion: a keyword, a table, a column of a table, a file, a command.
	x.types("sel\t count(*) AS c FROM ke\t;\r", `(?s)c\r\n[0-9]+\r\n.*stoa> `)
	x.types("SELECT max(val\t) > 0 AS big FROM keys;\r", `(?s)big\r\ntrue\r\n.*stoa> `)
	x.types("SELECT count(*) AS f FROM 'try/fl\t';\r", `(?s)f\r\n500\r\n.*stoa> `)
	x.types(".tab\t\r", `(?s)'try/flat.red'.*stoa> `)
	// History: the previous line, and that of an earlier dialogue.
	x.types("SELECT 1234 AS h;\r", `(?s)h\r\n1234\r\n.*stoa> `)
	x.types("\x1b[A\r", `(?s)h\r\n1234\r\n.*stoa> `)
	// Ctrl-C ends a statement, but not the dialogue.
	x.types("SELECT sum(hash(a.range, b.range)) FROM range(10000000) a, range(10000000) b;\r", `\r\n`)
	time.Sleep(300 * time.Millisecond)
	begin := time.Now()
	x.types("\x03", `(?s)interrupted.*stoa> `)
	if took := time.Since(begin); took > time.Duration(patience())*time.Second {
		t.Errorf("an interrupt took %s", took)
	}
	x.types("SELECT 5 AS still;\r", `(?s)still\r\n5\r\n.*stoa> `)
	// A Ctrl-C while a statement is typed drops it: in its first line, in the middle of a line, in a later one.
	x.types("SELECT nonsense\x03", `stoa> $`)
	x.types("SELECT 6 AS six;\r", `(?s)six\r\n6\r\n.*stoa> `)
	x.types("SELECT nonsense\x1b[D\x1b[D\x03", `stoa> $`)
	x.types("SELECT 'nonsense\r", `\.\.\.> `)
	x.types("more\x03", `stoa> $`)
	x.types("SELECT 7 AS seven;\r", `(?s)seven\r\n7\r\n.*stoa> `)
	// A statement over a table that takes more than a second shows its progress.
	x.types("SELECT sum(hash(a.value, b.value, c.value, d.value)) AS p FROM keys a, keys b, keys c, keys d;\r",
		`\[[#.]{12}\] +[0-9]+%  [0-9]+ of [0-9]+ rows read|rows read`)
	x.types("\x03", `(?s)interrupted.*stoa> `)
	x.types("\x04", ``)
	x.ends(0)
	y := prompt()
	y.types("\x1b[A\x1b[A\r", `(?s)7\r\n.*stoa> `)
	y.types(".quit\r", ``)
	y.ends(0)
}

// TestInterruptOnTerminal: on a terminal both stoa and stoa-sql get a Ctrl-C; still nothing is left behind.
func TestInterruptOnTerminal(t *testing.T) {
	dir := programs(t)
	c := command(dir, "stoa-sql", "COPY (SELECT i::BIGINT AS i FROM range(200000) r(i)) TO 'big.trv'")
	c.Dir = dir
	if status, _, errs := ended(t, c); status != 0 {
		t.Fatal(status, errs)
	}
	for _, query := range []string{"CREATE TABLE 'out.trv' AS SELECT a.i FROM 'big.trv' a, 'big.trv' b",
		"COPY (SELECT a.i FROM 'big.trv' a, 'big.trv' b) TO 'out.cfiles/' (FORMAT cfile)"} {
		c := command(dir, "stoa", "sql", "--no-progress", query)
		c.Dir = dir
		x := onTerminal(t, c)
		time.Sleep(time.Second)
		x.types("\x03", `interrupted`)
		x.ends(130)
		if left, _ := filepath.Glob(filepath.Join(dir, "*out*")); len(left) > 0 {
			t.Errorf("%s: left behind: %q", query, left)
		}
		if hidden, _ := filepath.Glob(filepath.Join(dir, ".*out*")); len(hidden) > 0 {
			t.Errorf("%s: left behind: %q", query, hidden)
		}
	}
}

func (x *terminal) ends(status int) {
	x.t.Helper()
	end := make(chan error, 1)
	go func() { end <- x.c.Wait() }()
	select {
	case <-end:
	case <-time.After(30 * time.Second):
		x.t.Fatal("it did not end")
	}
	if got := x.c.ProcessState.ExitCode(); got != status {
		x.t.Errorf("status %s, expected %d", strconv.Itoa(got), status)
	}
}
