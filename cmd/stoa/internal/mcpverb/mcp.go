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
		Short: "Let a program that speaks MCP read what lies below places",
		Long: `Serve the verbs that read to a program that speaks the Model Context Protocol over standard input and
output, such as an assistant: ls, schema, head, count, get, stats, explain, describe, verify, history, diff
and finding. It reads only what lies below the places, not what links in them lead to elsewhere, and no
addresses; it writes nothing. An answer has at most 256 KiB, and at most 1,000 rows. This verb is a
program of its own, stoa-mcp, which lies beside stoa or on the PATH.`,
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
