package about

import (
	"io"

	"stoa/cmd/stoa/internal/cli"

	"github.com/spf13/cobra"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

// plainBash replaces the functions of the package bash-completion where that is not installed. Words are then split at
// : and =, as bash itself splits them.
const plainBash = `
if ! declare -F _get_comp_words_by_ref >/dev/null && ! declare -F _init_completion >/dev/null; then
    __stoa_init_completion() {
        COMPREPLY=()
        cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=("${COMP_WORDS[@]}") cword=$COMP_CWORD
    }
    declare -F __ltrim_colon_completions >/dev/null || __ltrim_colon_completions() { :; }
    declare -F _filedir >/dev/null || _filedir() {
        if [ "$1" = -d ]; then COMPREPLY=($(compgen -d -- "$cur")); else COMPREPLY=($(compgen -f -- "$cur")); fi
    }
fi
`

func CompletionCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the script that makes a shell complete stoa's words",
		Long: `Print the script that makes a shell complete stoa's verbs, flags, formats, files and column
names.

  in ~/.bashrc: source <(stoa completion bash)
  zsh:   stoa completion zsh > "${fpath[1]}/_stoa"
  fish:  stoa completion fish > ~/.config/fish/completions/stoa.fish
  pwsh:  stoa completion powershell | Out-String | Invoke-Expression`,
		Example:   "  source <(stoa completion bash)\n  stoa completion fish > ~/.config/fish/completions/stoa.fish",
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &cli.UseError{Message: "completion needs the name of a shell",
					Hint: "bash, zsh, fish or powershell"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				if err := root.GenBashCompletionV2(a.Stdout, true); err != nil {
					return err
				}
				_, err := io.WriteString(a.Stdout, plainBash)
				return err
			case "zsh":
				return root.GenZshCompletion(a.Stdout)
			case "fish":
				return root.GenFishCompletion(a.Stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.Stdout)
			}
			return &cli.UseError{Message: "there is no completion for " + args[0],
				Hint: "bash, zsh, fish or powershell"}
		},
	}
}
