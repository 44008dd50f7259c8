package convert

import (
	"context"

	"github.com/spf13/cobra"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/inkind"
)

// inKindFlags are the flags of rescue --in-kind.
type inKindFlags struct {
	on     bool
	server string
}

func (f *inKindFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.on, "in-kind", false, "write mended directories of damaged Kudu servers instead of tables")
	cmd.Flags().StringVar(&f.server, "server", "",
		"with --in-kind: write only the server whose UUID begins with `UUID`")
}

// inKind writes mended copies of the directories of damaged servers.
func (r *rescue) inKind(ctx context.Context, k inKindFlags) error {
	if !k.on {
		return cli.WrongUse("--server goes with --in-kind")
	}
	for _, flag := range []string{"to", "file-size", "at", "resume", "opt", "no-check", "damaged", "parallel"} {
		if r.cmd.Flags().Changed(flag) {
			return cli.WrongUse("--in-kind writes directories as the servers have them: it has no --%s", flag)
		}
	}
	oo, _, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	return inkind.Write(ctx, r.a, inkind.Options{Roots: r.roots, Dir: r.dir, Server: k.server, Form: r.doc.form,
		Open: oo})
}
