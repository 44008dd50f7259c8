package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"stoa"
	"stoa/cmd/stoa/internal/catalogue"
	"stoa/cmd/stoa/internal/config"
	"stoa/cmd/stoa/internal/display"
	"stoa/format"
	"stoa/region"
	"stoa/store"
	"stoa/store/remote"
)

// App is one run of the command: its streams, the flags that every verb has, and shared state.
type App struct {
	In      io.Reader
	streams map[string]*stream // standard input and pipes, created at their first use
	Stdout  *outStream
	Out     io.Writer // the stream below Stdout's buffer
	Stderr  io.Writer
	Formats []format.Format

	Tty      bool // standard output is a terminal
	Width    int  // of standard output in cells, or COLUMNS; 0: no limit
	errTTY   bool // standard error is a terminal
	ErrWidth int  // of standard error; 0: no limit
	Asks     bool // standard input and standard error are terminals: questions can be asked

	Pages      bool         // standard output is a terminal, and may go through a pager
	endPager   func() error // closes the pager; nil: there is none
	plain      bool         // no colours: the configuration says so
	pagedPlain bool         // the pager shows none

	Quiet, Verbose, NoProgress, NoPager bool

	UserConfig bool           // the program reads the user's configuration: it is a command, and no library
	Config     *config.Config // nil: none
	Display    string         // the form of rows on a terminal; "": a table

	SingleWriter bool // nobody else writes to the stores that are written to
	// Within is all that is read, in place of local files, addresses and streams; nil: no such limit. See stoa serve.
	Within   store.Tree
	Opening  int64 // bytes of memory for opening a source unless a flag says otherwise; 0: the default
	Tallies  tallies
	line     statusLine
	shared   sync.Mutex // guards reported, read and places: several tables are read at a time
	reported map[region.Finding]bool
	remote   *remote.Tree     // for the addresses that are read; see Remote
	read     []string         // places that are read
	places   map[string]bool  // read without the names of tables
	Verbs    []*cobra.Command // in the order of the overview
}

func NewApp(stdin io.Reader, stdout, stderr io.Writer) *App {
	a := &App{In: stdin, Out: stdout, Stderr: stderr, Formats: catalogue.Formats()}
	a.Stdout = newOutStream(spoken{stdout, a.spoke})
	a.Tty, a.Width = terminal(stdout)
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		a.Width = n // as in ls and ps: whoever exports COLUMNS means it for pipes, too
	}
	a.Pages = a.Tty
	a.errTTY, a.ErrWidth = terminal(stderr)
	f, ok := stdin.(*os.File)
	a.Asks = a.errTTY && ok && isTerminal(f)
	return a
}

// terminal reports whether w is a terminal, and its width.
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

// Colour reports whether standard output may be coloured.
func (a *App) Colour() bool { return a.Tty && !a.pagedPlain && a.hued() }

// hued reports whether terminals get colours. NO_COLOR is a convention: https://no-color.org
func (a *App) hued() bool {
	return !a.plain && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// EndPager tells the pager, if there is one, that there is no more, and waits until the user has left it. What is
// written after it is lost.
func (a *App) EndPager() error {
	if a.endPager == nil {
		return nil
	}
	return a.endPager()
}

// Note prints a message on standard error, unless -q is given.
func (a *App) Note(format string, args ...any) {
	if !a.Quiet {
		a.Warn(format, args...)
	}
}

// conversing are the verbs that show something else on the terminal for as long as they run.
var conversing = []string{"browse", "serve", "flight", "mcp", "sql"}

// Work shows on a terminal, when a verb has taken a second, how long it has taken, and how much it has read. It ends
// when rows or a report come out on the terminal.
func (a *App) Work(verb string) {
	if a.errTTY && !a.Quiet && !a.NoProgress && !slices.Contains(conversing, verb) {
		a.line.begin(a.Stderr, a.ErrWidth, a.Tallies.Read.Load)
	}
}

// EndWork ends Work, and removes the line.
func (a *App) EndWork() { a.line.finish(a.Stderr) }

// spoke is called before standard output is written to.
func (a *App) spoke() {
	if a.Tty {
		a.EndWork()
	}
}

// print prints whole lines on standard error.
func (a *App) print(lines string) { a.line.print(a.Stderr, lines) }

// Warn prints an error that does not end the command on standard error, even with -q.
func (a *App) Warn(format string, args ...any) {
	line := display.Hanging(display.Printable(InFlags(fmt.Sprintf(format, args...))), a.ErrWidth)
	a.print(display.Graded(line, a.errTTY && a.hued()))
}

// Detail prints a message only with -v.
func (a *App) Detail(format string, args ...any) {
	if a.Verbose {
		a.Note(format, args...)
	}
}

// FirstReport reports whether it is the first call for the finding.
func (a *App) FirstReport(f region.Finding) bool {
	a.shared.Lock()
	defer a.shared.Unlock()
	if a.reported[f] {
		return false
	}
	if a.reported == nil {
		a.reported = map[region.Finding]bool{}
	}
	a.reported[f] = true
	return true
}

// Format returns a format by its name, or nil.
func (a *App) Format(name string) *format.Format {
	for i := range a.Formats {
		if a.Formats[i].Name == name {
			return &a.Formats[i]
		}
	}
	return nil
}

// outStream is standard output, buffered.
type outStream struct{ *bufio.Writer }

func newOutStream(w io.Writer) *outStream {
	return &outStream{bufio.NewWriterSize(pipeEnd{w}, 64<<10)}
}

// WriteThrough makes standard output pass on at once what is written to it, line by line.
func (a *App) WriteThrough() {
	// What is longer than the buffer is not kept in it.
	a.Stdout = &outStream{bufio.NewWriterSize(pipeEnd{spoken{a.Out, a.spoke}}, 1)}
}

// ErrEnough means that the reader of our output has stopped reading, as `head` does. It ends the command, and is not a
// failure.
var ErrEnough = errors.New("nobody reads the output any more")

// AllRead is for verbs whose output must be read to its end: for them a reader that stops early is a failure.
func AllRead(err error) error {
	if errors.Is(err, ErrEnough) {
		return errors.New("the reader of the output went away before its end")
	}
	return err
}

type pipeEnd struct{ w io.Writer }

func (p pipeEnd) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		err = ErrEnough
	}
	return n, err
}

// Pool is the allocator of every scan of the command.
var Pool = stoa.NewPool()

// leastHeap is the least size of the heap that Budget asks for: what every scan needs.
const leastHeap = 256 << 20

// Budget has the process use about as much memory as --memory says: fewer unused buffers are kept, and garbage is
// collected early enough. The output and opening a source may each use that much. GOMEMLIMIT takes precedence.
func Budget(n int64) {
	if p, ok := Pool.(interface{ Keep(limit int64) }); ok {
		p.Keep(min(n/4, 256<<20))
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(2*n, leastHeap))
	}
}

func (a *App) FormatNames() []string {
	var out []string
	for _, f := range a.Formats {
		out = append(out, f.Name)
	}
	return out
}

func (a *App) WritableNames() []string {
	var out []string
	for _, f := range a.Formats {
		if f.Create != nil {
			out = append(out, f.Name)
		}
	}
	return out
}
