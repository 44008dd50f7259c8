package about

import (
	_ "embed"
	"io"
	"strings"

	"stoa/cmd/stoa/internal/cli"

	"github.com/spf13/cobra"
)

// Texts are the files of TextNames, compressed, with a zero byte between them.
//
//go:embed texts.br
var Texts []byte

// TextNames are the page of skill, whose sessions a test runs, and that of the predicates.
var TextNames = [...]string{"skill.md", "predicates.txt"}

func texts() []string { return strings.Split(string(unpacked(Texts)), "\x00") }

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
			_, err := io.WriteString(a.Stdout, texts()[0])
			return err
		},
	}
}
