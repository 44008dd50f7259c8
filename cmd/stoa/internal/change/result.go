package change

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/output"
	"stoa/format"
)

// result is what a verb did to a table, or would do in a dry run. With -f json it is printed as an object.
type result struct {
	Verb       string              `json:"verb"`
	Table      string              `json:"table"` // as given on the command line
	DryRun     bool                `json:"dry_run"`
	Rows       *int64              `json:"rows,omitempty"`       // of update and delete
	Segments   []string            `json:"segments,omitempty"`   // new ones, or those that were removed
	Partitions []string            `json:"partitions,omitempty"` // of drop-partition
	Compacted  []format.Compaction `json:"compacted,omitempty"`
	Files      []string            `json:"files,omitempty"` // of clean
	FileCount  *int64              `json:"file_count,omitempty"`
	Bytes      *int64              `json:"bytes,omitempty"`
	Messages   []string            `json:"messages"` // as text, for people
}

// count returns a number that is printed even if it is 0.
func count[T int | int64](n T) *int64 {
	v := int64(n)
	return &v
}

// formFlag adds -f to a verb that changes a table.
func formFlag(cmd *cobra.Command) *string {
	form := cmd.Flags().StringP("format", "f", "text",
		"say what was done as `FORM`: text, a line on standard error; json, an object on standard output")
	cli.Complete(cmd, "format", func() []string { return output.SummaryForms })
	return form
}

// checkForm refuses an unknown form.
func checkForm(form string) error {
	if slices.Contains(output.SummaryForms, form) {
		return nil
	}
	return &cli.UseError{Message: "-f " + form + " is not a form of the summary",
		Hint: "the forms are text and json"}
}

// reporter collects what a verb did.
type reporter struct {
	app  *cli.App
	form string
	result
}

// note prints a message about the table, or keeps it for the object.
func (r *reporter) note(format string, args ...any) { r.noteOf(r.Table, format, args...) }

func (r *reporter) noteOf(what, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if r.form == "json" {
		r.Messages = append(r.Messages, text)
		return
	}
	r.app.Note("%s: %s", what, text)
}

// end prints the object, unless the verb failed.
func (r *reporter) end(err error) error {
	if err != nil || r.form != "json" {
		return err
	}
	if r.Messages == nil {
		r.Messages = []string{}
	}
	return output.WriteSummary(r.app, r.result)
}
