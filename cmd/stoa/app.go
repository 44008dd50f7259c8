package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"stoa"
	"stoa/cmd/stoa/internal/catalogue"
	"stoa/format"
	"stoa/region"
)

// app is one run of the command: its streams, the flags that every verb has, and what is shared.
type app struct {
	in      io.Reader
	streams map[string]*stream // standard input and pipes, made by their first use
	stdout  *outStream
	stderr  io.Writer
	formats []format.Format

	tty      bool // standard output is a terminal
	width    int  // of it, in cells, or what COLUMNS says; 0: no limit
	errTTY   bool // standard error is one
	errWidth int  // of it; 0: no limit

	quiet, verbose, noProgress bool
	tallies                    tallies
	told                       map[region.Finding]bool
	read                       []string         // places from which is read
	verbs                      []*cobra.Command // in the order of the overview
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *app {
	a := &app{in: stdin, stdout: newOutStream(stdout), stderr: stderr, formats: catalogue.Formats()}
	a.tty, a.width = terminal(stdout)
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		a.width = n // as ls and ps have it: whoever exports it has a reason, also for a pipe
	}
	a.errTTY, a.errWidth = terminal(stderr)
	return a
}

// terminal reports whether w is a terminal, and how wide it is.
func terminal(w io.Writer) (bool, int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false, 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return true, width
}

// colour reports whether standard output may be coloured. NO_COLOR is a common wish: https://no-color.org
func (a *app) colour() bool {
	return a.tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// note tells something on standard error, unless -q.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		a.alarm(format, args...)
	}
}

// alarm tells an error on standard error, that of which the command goes on.
func (a *app) alarm(format string, args ...any) {
	fmt.Fprintln(a.stderr, hanging(printable(inFlags(fmt.Sprintf(format, args...))), a.errWidth))
}

// detail tells something only with -v.
func (a *app) detail(format string, args ...any) {
	if a.verbose {
		a.note(format, args...)
	}
}

// format finds a format by its name.
func (a *app) format(name string) *format.Format {
	for i := range a.formats {
		if a.formats[i].Name == name {
			return &a.formats[i]
		}
	}
	return nil
}

// outStream is standard output, buffered.
type outStream struct{ *bufio.Writer }

func newOutStream(w io.Writer) *outStream {
	return &outStream{bufio.NewWriterSize(pipeEnd{w}, 64<<10)}
}

// errEnough says that whoever reads our output has enough, as `head` does. It ends the command, and is no failure.
var errEnough = errors.New("nobody reads the output any more")

// allRead is for verbs of which everything must be read: a reader that went away is a failure then.
func allRead(err error) error {
	if errors.Is(err, errEnough) {
		return errors.New("who reads the output went away before its end")
	}
	return err
}

type pipeEnd struct{ w io.Writer }

func (p pipeEnd) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		err = errEnough
	}
	return n, err
}

// pool is the allocator of every scan of the command.
var pool = stoa.NewPool()
