// Command stoa-mcp serves the reading verbs of stoa to programs, by the Model Context Protocol over standard input
// and output. It reads only what lies below the places of its command line.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/fault"
	"stoa/serve"
	"stoa/store"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out := &whole{out: os.Stdout}
	in := newMessages(os.Stdin, out)
	err := run(ctx, os.Args[1:], &sdk.IOTransport{Reader: in, Writer: out})
	if err != nil && !in.ended.Load() && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "stoa:", err)
		if errors.Is(err, fault.Invalid) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

// run serves places until the client goes away or ctx ends.
func run(ctx context.Context, places []string, by sdk.Transport) error {
	if len(places) == 0 || places[0] == "-h" || places[0] == "--help" {
		return fault.Invalidf("usage: stoa-mcp PLACE...: which directories and files may be read")
	}
	tree, err := serve.NewTree(places)
	if err != nil {
		return err
	}
	defer tree.Close()
	return newServer(tree, command).Run(ctx, by)
}

// command runs a verb, which sees nothing but tree. A panic is an error of this call, and not the end of all others.
func command(ctx context.Context, tree store.Tree, args []string, out, notes io.Writer) (status int) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(notes, "stoa: a bug: %v\n", p)
			status = 1
		}
	}()
	a := verbs.NewApp(nil, out, notes)
	a.Within = tree
	status, _ = verbs.RunApp(stoa.Session(ctx), a, args)
	return status
}
