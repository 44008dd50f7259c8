// Package mcpverb is the verb mcp, which runs the program stoa-mcp.
package mcpverb

import (
	"github.com/spf13/cobra"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/companion"
)

// Cmd returns the verb.
func Cmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp PLACE...",
		Short: "Let an MCP client, such as an assistant, read places",
		Long: `Serve the reading verbs to a client of the Model Context Protocol, such as an assistant,
over standard input and output: ls, schema, head, count, get, stats, explain, describe, verify, history,
diff and finding. Only files below the PLACEs are read: symbolic links that lead elsewhere are not
followed, and addresses are refused. Nothing is written. An answer has at most 256 KiB and 1,000 rows. The
verb is run by a separate program, stoa-mcp, beside stoa or on the PATH.`,
		Example: "  stoa mcp kudu/\n  stoa mcp store/ sales.parquet",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.WrongUse("mcp needs a place: which directories and files may be read")
			}
			return cli.OnceDash(args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return companion.Run(cmd, a, "stoa-mcp", "mcp", args...)
		},
	}
}
