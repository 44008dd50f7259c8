package about

import (
	_ "embed"
	"io"

	"stoa/cmd/stoa/internal/cli"

	"github.com/spf13/cobra"
)

// skill is the page; its sessions are run by a test.
//
//go:embed skill.md
var skill string

// SkillCmd returns the verb skill.
func SkillCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "skill",
		Short: "Print a guide for scripts and assistants that run stoa",
		Long: "Print a guide, in Markdown, for scripts and assistants that run stoa: rules, exit statuses, and " +
			"sample sessions.",
		Example: "  stoa skill\n  stoa skill > SKILL.md",
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(a.Stdout, skill)
			return err
		},
	}
}
