package about

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/output"

	"github.com/spf13/cobra"
)

var versionForms = []string{"text", "json"}

// versionDoc describes this program.
type versionDoc struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified"`
}

func VersionCmd(a *cli.App) *cobra.Command {
	var out output.OutputFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of stoa",
		Example: "  stoa version\n  stoa version --json",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON && !cmd.Flags().Changed("format") {
				out.Form = "json"
			}
			if err := out.Check(versionForms); err != nil {
				return err
			}
			return output.PutDoc(a, cmd.Context(), &out,
				func(w io.Writer) error { return writeVersion(w, out.Form, Version()) })
		},
	}
	out.Register(cmd, versionForms, "default text")
	cmd.Flags().BoolVar(&asJSON, "json", false, "the same as -f json")
	return cmd
}

// stamp is set by the linker where the main module is not the command's, of which Go would give the version (capi/):
// VERSION,REVISION,TIME,MODIFIED, the last "true" or "false".
var stamp string

func Version() versionDoc {
	d := versionDoc{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return d
	}
	d.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			d.Revision = s.Value
		case "vcs.time":
			d.Time = s.Value
		case "vcs.modified":
			d.Modified = s.Value == "true"
		}
	}
	if f := strings.Split(stamp, ","); len(f) == 4 {
		d.Version, d.Revision, d.Time, d.Modified = f[0], f[1], f[2], f[3] == "true"
	}
	return d
}

func writeVersion(w io.Writer, form string, d versionDoc) error {
	if form == "json" {
		b, err := output.JsonLine(d)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
	s := fmt.Sprintf("stoa %s, %s, %s", d.Version, d.Go, d.Platform)
	if d.Revision != "" {
		s += fmt.Sprintf("\nrevision %s of %s", d.Revision, d.Time)
		if d.Modified {
			s += ", with changes"
		}
	}
	_, err := fmt.Fprintln(w, s)
	return err
}
