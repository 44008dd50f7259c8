// Package flightverb is the part of the verb flight that needs no gRPC: its flags and its help, and the search for the
// program that has it, stoa-flight, which is a module of its own.
package flightverb

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/companion"
	"stoa/serve"
)

// Flags are the flags of the verb.
type Flags struct {
	Listen string
	Port   int
	Names  []string
	Token  string // "": none is needed
	Cert   string
	Key    string
	Memory string
	Split  string // bytes of an endpoint
}

// MemoryBytes returns the limit of --memory.
func (f *Flags) MemoryBytes() (int64, error) { return cli.ParseSize("--memory", f.Memory) }

// SplitBytes returns the size of --split.
func (f *Flags) SplitBytes() (int64, error) {
	n, err := cli.ParseSize("--split", f.Split)
	if err == nil && n < 1 {
		err = cli.WrongUse("--split %s: a size is at least 1", f.Split)
	}
	return n, err
}

// Run serves places until ctx ends. It calls ready with the address when it listens.
type Run func(ctx context.Context, f *Flags, places []string, ready func(address string) error,
	log func(string)) error

const help = `Serve the tables of places to programs by Arrow Flight SQL, until Ctrl-C: to drivers of ADBC and JDBC, and
so to BI tools, pandas, polars. The address is printed. Each PLACE is a schema, its tables have the names
that stoa ls shows. A statement is select COLUMNS from TABLE [where PREDICATE] [limit N], with the
predicates of --where and count(*); or, if stoa-sql is there, any query in SQL. Large tables come in
several endpoints, in order.

Only files below the PLACEs are read, never written; symbolic links that lead elsewhere are not followed,
and addresses are refused. The server listens only on this machine (127.0.0.1). With --listen others can
use it, with a token: as a bearer token, or as the password of any user. --tls-cert encrypts. The verb is
run by a separate program, stoa-flight, beside stoa or on the PATH.`

// Cmd returns the verb. If run is nil, it runs the program stoa-flight.
func Cmd(a *cli.App, run Run) *cobra.Command {
	f := &Flags{}
	cmd := &cobra.Command{
		Use:   "flight PLACE...",
		Short: "Serve tables by Arrow Flight SQL, to ADBC, JDBC and BI tools",
		Long:  help,
		Example: "  stoa flight kudu/ --port 31337\n" +
			"  stoa flight store/ --listen 0.0.0.0 --tls-cert cert.pem --tls-key key.pem",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.WrongUse("flight needs a place: which directories and files are served")
			}
			return cli.OnceDash(args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if run == nil {
				return companion.Run(cmd, a, "stoa-flight", "flight", f.words(args)...)
			}
			if f.Listen != "" && f.Token == "" {
				f.Token = serve.NewToken()
			}
			return run(cmd.Context(), f, args, func(address string) error { return f.ready(a, address) },
				func(s string) { a.Warn("stoa: %s", s) })
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Listen, "listen", "", "listen on `ADDRESS`, such as 0.0.0.0, so that other machines can ask")
	fl.IntVar(&f.Port, "port", 0, "listen on port `N` (default: a free one)")
	fl.StringArrayVar(&f.Names, "name", nil,
		"also answer requests for the host `NAME`, not only for numeric addresses; repeatable")
	fl.StringVar(&f.Token, "token", "",
		"ask for this `TOKEN`, of 16 characters or more (default: with --listen a random one, else none)")
	fl.StringVar(&f.Cert, "tls-cert", "", "encrypt, with the certificate, or chain of them, in the PEM file `FILE`")
	fl.StringVar(&f.Key, "tls-key", "", "the private key of the certificate: a PEM file `FILE`")
	fl.StringVar(&f.Memory, "memory", "256MiB", "refuse a source that needs more than `SIZE` of memory to open")
	fl.StringVar(&f.Split, "split", "64MiB", "divide tables into endpoints of about `SIZE` stored bytes")
	return cli.First(cmd, "port", "listen", "token")
}

// check returns wrong use of the flags.
func (f *Flags) check() error {
	switch {
	case f.Port < 0 || f.Port > 65535:
		return cli.WrongUse("--port %d: a port is 0 to 65535", f.Port)
	case f.Token != "" && len(f.Token) < 16:
		return cli.WrongUse("--token: a token has 16 characters or more")
	case (f.Cert == "") != (f.Key == ""):
		return cli.WrongUse("--tls-cert and --tls-key go together")
	}
	_, err := f.MemoryBytes()
	if err == nil {
		_, err = f.SplitBytes()
	}
	return err
}

// ready says where the server listens.
func (f *Flags) ready(a *cli.App, address string) error {
	if _, err := fmt.Fprintln(a.Stdout, address); err != nil {
		return err
	}
	if err := a.Stdout.Flush(); err != nil {
		return err
	}
	if f.Token != "" {
		a.Note("token: %s", f.Token)
	}
	if f.Listen != "" && f.Cert == "" {
		a.Note("nothing is encrypted without --tls-cert")
	}
	a.Note("Ctrl-C ends it")
	return nil
}

// words are the arguments of the program.
func (f *Flags) words(places []string) (args []string) {
	add := func(name, value string) {
		if value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	add("listen", f.Listen)
	if f.Port != 0 {
		add("port", strconv.Itoa(f.Port))
	}
	for _, n := range f.Names {
		add("name", n)
	}
	add("token", f.Token)
	add("tls-cert", f.Cert)
	add("tls-key", f.Key)
	add("memory", f.Memory)
	add("split", f.Split)
	return append(append(args, "--"), places...)
}
