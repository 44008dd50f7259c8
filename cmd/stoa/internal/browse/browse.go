// Package browse is the verb browse: tables, rows, columns, the structure of files and what verify finds, in a
// terminal. It is a client of the page's server (package serve), in this process: the same answers, the same limits.
package browse

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/serving"
	"stoa/serve"
)

const help = `Show a file or a place in this terminal: its tables, their rows and columns, the structure of files
down to the bytes, and damage. 80 x 24 characters are enough, and no mouse is needed: ? lists the keys.

It reads only what lies below the PATH, and writes nothing. Text from files is shown with escapes in
place of control characters, so that none of it reaches the terminal as a command. stoa serve shows the
same, and more, in the browser.`

// Cmd returns the verb.
func Cmd(a *cli.App, run serving.Run) *cobra.Command {
	var memory string
	cmd := &cobra.Command{
		Use:     "browse PATH",
		Short:   "Show a file or a place in the terminal: rows, columns, structure, damage",
		Long:    help,
		Example: "  stoa browse sales.parquet\n  stoa browse kudu/\n  stoa browse kudu#d_major",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.WrongUse("browse needs one path")
			}
			return cli.OnceDash(args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			place := pathOf(args[0])
			c, err := serving.Config(a, run, []string{place}, memory)
			if err != nil {
				return err
			}
			return show(cmd.Context(), a, c, place, args[0])
		},
	}
	cmd.Flags().StringVar(&memory, "memory", "256MiB", "refuse a source that needs more than `SIZE` of memory to open")
	return cli.First(cmd, "memory")
}

// show runs until the user leaves. Whatever ends it, the terminal is as before.
func show(ctx context.Context, a *cli.App, c serve.Config, place, name string) error {
	if in, ok := a.In.(*os.File); !ok || !a.Tty || !term.IsTerminal(int(in.Fd())) {
		return cli.WrongUse("browse needs a terminal; stoa serve shows the same in the browser")
	}
	if strings.Contains(place, "://") {
		return cli.WrongUse("%s: browse shows local files only", place)
	}
	var bugs []string
	c.Log = func(s string) { bugs = append(bugs, s) }
	s, err := serve.New(c)
	if err != nil {
		return err
	}
	defer s.Close()
	screen, err := tcell.NewScreen()
	if err == nil {
		err = screen.Init()
	}
	if err != nil {
		return errors.New("this terminal cannot be used (TERM is " + os.Getenv("TERM") + "): " + err.Error())
	}
	b := newBrowser(ctx, s, screen, os.Getenv("NO_COLOR") == "")
	err = func() error {
		defer screen.Fini() // also if this panics
		b.open(place, name)
		return b.run()
	}()
	b.close()
	for _, bug := range bugs {
		a.Warn("stoa: %s", bug)
	}
	return err
}
