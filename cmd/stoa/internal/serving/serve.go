// Package serving is the verb serve: its flags, and the command as package serve runs it.
package serving

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/about"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/companion"
	"stoa/format"
	"stoa/serve"
	"stoa/store"
	"stoa/store/remote"
)

// Run runs a command line.
type Run func(ctx context.Context, a *cli.App, args []string) (int, error)

// flags are those of the verb.
type flags struct {
	listen string
	port   int
	names  []string
	token  string
	idle   time.Duration
	memory string
	write  string
}

const help = `Show places in the browser, until Ctrl-C: tables, their rows and values, the structure of
files with the owner of every byte, what a predicate reads, and damage. The address of the page is
printed. The page is self-contained: it loads nothing from elsewhere, and nothing is installed.

Only files below the PATHs are read; nothing is written, except new files in --allow-write DIR. Symbolic
links that lead elsewhere are not followed, and addresses are refused. The server listens only on this
machine (127.0.0.1). With --listen others can see the page, but only by the printed address, which has a
token. Nothing is encrypted: beyond a trusted network, forward the port by ssh. The page shows what the
verbs print with -f json, each with its command line.`

// Cmd returns the verb.
func Cmd(a *cli.App, run Run) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:     "serve PATH...",
		Short:   "Show a place in the browser: its tables, files and damage",
		Long:    help,
		Example: "  stoa serve kudu/\n  stoa serve sales.parquet table/ --port 8080 --idle 30m",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.WrongUse("serve needs a path")
			}
			if i := slices.IndexFunc(args, remote.Is); i >= 0 {
				return cli.WrongUse("%s: serve shows local files only", cli.ShownAddress(args[i]))
			}
			return cli.OnceDash(args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.serve(cmd.Context(), a, run, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", "",
		"listen on `ADDRESS`, such as 0.0.0.0, so that other machines can see the page")
	fl.IntVar(&f.port, "port", 0, "listen on port `N` (default: a free one)")
	fl.StringArrayVar(&f.names, "name", nil,
		"with --listen: also answer requests for the host `NAME`, not only for numeric addresses; repeatable")
	fl.StringVar(&f.token, "token", "",
		"with --listen: use this `TOKEN`, of 16 characters or more (default: a random one)")
	fl.StringVar(&f.write, "allow-write", "",
		"let the page write new files, as recover does, to the directory `DIR`, which it also shows (default: none)")
	fl.DurationVar(&f.idle, "idle", 0, "stop after `TIME` without a request, such as 30m (default: never)")
	fl.StringVar(&f.memory, "memory", "256MiB", "refuse a source that needs more than `SIZE` of memory to open")
	return cli.First(cmd, "port", "listen", "idle")
}

// check returns wrong use of the flags.
func (f *flags) check() error {
	switch {
	case f.port < 0 || f.port > 65535:
		return cli.WrongUse("--port %d: a port is 0 to 65535", f.port)
	case f.listen == "" && (f.token != "" || len(f.names) > 0):
		return cli.WrongUse("--token and --name go with --listen")
	case f.token != "" && len(f.token) < 16:
		return cli.WrongUse("--token: a token has 16 characters or more")
	case f.idle < 0:
		return cli.WrongUse("--idle %s: a time is not negative", f.idle)
	}
	return nil
}

// Config is how places are served whose sources may use memory to be opened: by the formats and verbs of the command.
func Config(a *cli.App, run Run, places []string, memory string) (serve.Config, error) {
	opening, err := cli.ParseSize("--memory", memory)
	if err != nil {
		return serve.Config{}, err
	}
	c := serve.Config{Places: places, Formats: a.Formats, Limits: format.Limits{Opening: opening},
		Version: about.Version().Version, Log: func(s string) { a.Warn("stoa: %s", s) }}
	if _, err := companion.Find(companion.SQL); err == nil {
		c.SQL = func(ctx context.Context, places []string, query string, out, notes io.Writer) int {
			return companion.Query(ctx, places, query, "jsonl", out, notes)
		}
	}
	c.Command = func(ctx context.Context, tree store.Tree, args []string, out, errs io.Writer) int {
		inner := cli.NewApp(nil, out, errs)
		inner.Within, inner.Formats, inner.Opening = tree, a.Formats, opening
		inner.WriteThrough()
		status, _ := run(stoa.Session(ctx), inner, args)
		return status
	}
	return c, nil
}

func (f *flags) serve(ctx context.Context, a *cli.App, run Run, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	c, err := Config(a, run, args, f.memory)
	if err != nil {
		return err
	}
	if f.write != "" {
		if st, err := os.Stat(f.write); err != nil || !st.IsDir() {
			return cli.WrongUse("--allow-write %s: there is no such directory", f.write)
		}
		c.Write, c.Places = f.write, append(slices.Clip(c.Places), f.write)
	}
	host := "127.0.0.1"
	if f.listen != "" {
		host, c.Listens, c.Hosts, c.Token = f.listen, true, append(f.names, f.listen), f.token
		if c.Token == "" {
			c.Token = serve.NewToken()
		}
	}
	s, err := serve.New(c)
	if err != nil {
		return err
	}
	defer s.Close()
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(f.port)))
	if err != nil {
		return err
	}
	defer l.Close()
	if _, err := fmt.Fprintln(a.Stdout, address(l.Addr(), c.Token)); err != nil {
		return err
	}
	if err := a.Stdout.Flush(); err != nil {
		return err
	}
	a.Note("Ctrl-C ends it")
	return s.Run(ctx, l, f.idle)
}

// address returns the address of the page.
func address(at net.Addr, token string) string {
	host, port, _ := net.SplitHostPort(at.String())
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, port), Path: "/"}
	if token != "" {
		u.RawQuery = url.Values{"token": {token}}.Encode()
	}
	return u.String()
}
