package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
)

// paged are the verbs whose text goes through a pager on a terminal, and pagedForms the forms in which it does.
var (
	paged      = []string{"cat", "head", "tail", "schema", "verify", "describe"}
	pagedForms = []string{"", "text", "table", "vertical", "markdown"}
)

// pager is a program that shows the output page by page.
type pager struct {
	cmd  *exec.Cmd
	in   *os.File
	name string
	once sync.Once
	err  error
}

// PageVerb sends the output of a verb through a pager if it is text for a terminal.
func (a *App) PageVerb(cmd *cobra.Command) {
	if !slices.Contains(paged, cmd.Name()) {
		return
	}
	if f := cmd.Flags().Lookup("output"); f != nil && f.Value.String() != "" && f.Value.String() != Dash {
		return
	}
	if f := cmd.Flags().Lookup("format"); f != nil && !slices.Contains(pagedForms, f.Value.String()) {
		return
	}
	if f := cmd.Flags().Lookup("html"); f != nil && f.Value.String() != f.DefValue {
		return
	}
	a.Page()
}

// Page sends standard output through the pager of STOA_PAGER, the configuration or PAGER, else less, if it is a
// terminal. An empty name, or cat, is none. A pager that is not there is reported, and the output goes to the terminal.
func (a *App) Page() {
	if !a.Pages || a.NoPager || a.endPager != nil || os.Getenv("TERM") == "dumb" {
		return
	}
	name, given := os.LookupEnv("STOA_PAGER")
	if !given {
		name, given = a.Config.Default("pager")
	}
	if !given {
		name, given = os.LookupEnv("PAGER")
	}
	if !given {
		name = "less"
	}
	words := strings.Fields(name)
	if len(words) == 0 || name == "cat" {
		return
	}
	if _, err := exec.LookPath(words[0]); err != nil && !strings.ContainsAny(name, "=$'\"\\;|&(") {
		if given {
			a.Note("the pager %s is not there; --no-pager does without one", words[0])
		}
		return
	}
	p := &pager{name: name, cmd: exec.Command(words[0], words[1:]...)}
	if sh, err := exec.LookPath("sh"); err == nil {
		p.cmd = exec.Command(sh, "-c", name)
	}
	out, in, err := os.Pipe()
	if err != nil {
		return
	}
	defer out.Close()
	p.in, p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, a.Out, a.Stderr
	p.cmd.Env = os.Environ()
	if _, set := os.LookupEnv("LESS"); !set {
		p.cmd.Env = append(p.cmd.Env, "LESS=FRX") // it ends at once if everything fits, and shows colours
	}
	if p.cmd.Start() != nil {
		in.Close()
		return
	}
	less := cmp.Or(os.Getenv("LESS"), "FRX")
	a.pagedPlain = filepath.Base(words[0]) != "less" || !strings.ContainsAny(less, "Rr")
	a.endPager, a.Stdout, a.NoProgress = p.end, newOutStream(spoken{p, a.spoke}), true
}

// Write writes to the pager.
func (p *pager) Write(b []byte) (int, error) {
	n, err := p.in.Write(b)
	if errors.Is(err, os.ErrClosed) { // by a signal
		err = io.ErrClosedPipe
	}
	return n, err
}

// end closes the pipe, and waits for the pager.
func (p *pager) end() error {
	p.once.Do(func() {
		signal.Ignore(os.Interrupt) // now Ctrl-C is for the pager alone
		p.in.Close()
		exit := new(exec.ExitError)
		if err := p.cmd.Wait(); errors.As(err, &exit) && (exit.ExitCode() == 126 || exit.ExitCode() == 127) {
			p.err = fmt.Errorf("the pager %s cannot be run; --no-pager does without one", p.name)
		}
	})
	return p.err
}
