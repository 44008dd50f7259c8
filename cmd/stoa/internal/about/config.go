package about

import (
	_ "embed" // the text
	"os"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/config"
	"stoa/cmd/stoa/internal/output"

	"github.com/spf13/cobra"
)

// configDoc is one line of stoa config: the file, the default of a setting, or a named place.
type configDoc struct {
	Kind  string `json:"kind"` // file, setting or place
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"` // what sets it; empty: nothing does
}

//go:embed config.txt
var configHelp string

// ConfigCmd is the verb config.
func ConfigCmd(a *cli.App) *cobra.Command {
	var out output.OutputFlags
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Show the configuration: defaults and named places",
		Long:    configHelp,
		Example: "  stoa config\n  stoa config -f json",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := output.Report{Cols: []output.ReportColumn{{Name: "name"}, {Name: "value"}, {Name: "from"}}}
			for _, d := range configDocs(a.Config) {
				name := d.Name
				if d.Kind == "place" {
					name = config.Scheme + name
				}
				r.Add(d, name, d.Value, d.From)
			}
			return r.Write(cmd.Context(), a, &out)
		},
	}
	out.Register(cmd, output.ReportForms, "default text")
	return cmd
}

func configDocs(c *config.Config) (docs []configDoc) {
	if c == nil {
		c = &config.Config{}
	}
	file := configDoc{"file", "file", c.File, c.Source}
	if !c.Exists {
		file.From += ": not there"
	}
	if c.File == "" {
		file.Value, file.From = "none", c.Source
	}
	docs = append(docs, file)
	for _, name := range config.Names() {
		d := configDoc{Kind: "setting", Name: name}
		if v, ok := c.Default(name); ok {
			d.Value, d.From = v, "the file"
		}
		overridden(&d)
		docs = append(docs, d)
	}
	for _, name := range c.Places() {
		docs = append(docs, configDoc{"place", name, c.Place(name), "the file"})
	}
	return docs
}

// overridden sets what the environment says in place of the file.
func overridden(d *configDoc) {
	switch d.Name {
	case "pager":
		if v, ok := os.LookupEnv("STOA_PAGER"); ok {
			d.Value, d.From = v, "STOA_PAGER"
		} else if v, ok := os.LookupEnv("PAGER"); ok && d.From == "" {
			d.Value, d.From = v, "PAGER"
		}
	case "colour":
		if os.Getenv("NO_COLOR") != "" {
			d.Value, d.From = "false", "NO_COLOR"
		}
	}
}
