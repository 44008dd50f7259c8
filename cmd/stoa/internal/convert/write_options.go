package convert

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/register"
	"stoa/cmd/stoa/internal/source"
	"stoa/format"
	"stoa/format/option"
)

// writeFlags say where and how a table is written.
type writeFlags struct {
	out  string
	to   string
	opts []string
	form string
	mem  string

	unchecked bool
	fileSize  string // "": a table is one file

	partitions string   // of --partition-by
	flat       []string // what is to be said of a partitioned source whose table of a lake is not
	by         []string // the same, as columns that become directories; nil for formats that divide tables themselves

	catalog   string              // of --catalog
	catalogue *register.Catalogue // the same; nil if there is none
}

func (f *writeFlags) register(a *cli.App, cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "write to `OUT`: a file, a directory, or - for standard output (required)")
	fl.StringVar(&f.to, "to", "", "write `FORMAT` (default: by the extension of OUT)")
	fl.StringArrayVar(&f.opts, "opt", nil,
		"set an option of the writer, `KEY=VALUE` (stoa formats NAME lists them); repeatable")
	fl.StringVar(&f.mem, "memory", "", "keep about `SIZE` of the output in memory, for example 512MiB, and the "+
		"rest in temporary files (formats with the option memory)")
	fl.BoolVar(&f.unchecked, "no-check", false, "do not read the output back to compare it with the input")
	fl.BoolVar(&a.SingleWriter, "assume-single-writer", false,
		"write even to a store that cannot exclude a second writer")
	fl.StringVarP(&f.form, "format", "f", "text",
		"say what was written as `FORM`: text, a line on standard error; json, an object on standard output")
	cli.Complete(cmd, "to", a.WritableNames)
	cli.Complete(cmd, "format", func() []string { return output.SummaryForms })
}

func (f *writeFlags) options(a *cli.App) (stoa.CreateOptions, error) {
	opts, err := source.KeyValues("--opt", f.opts)
	if err != nil {
		return stoa.CreateOptions{}, err
	}
	switch {
	case !slices.Contains(output.SummaryForms, f.form):
		return stoa.CreateOptions{}, &cli.UseError{Message: "-f " + f.form + " is not a form of the summary",
			Hint: "the forms are text and json; --to says which format to write"}
	case f.form == "json" && f.out == cli.Dash:
		return stoa.CreateOptions{}, cli.WrongUse("-f json and -o - would both write to standard output")
	}
	if f.out == "" {
		return stoa.CreateOptions{}, &cli.UseError{Message: "-o says where to write; it is missing",
			Hint: "-o - is standard output"}
	}
	if f.to != "" && a.Format(f.to) == nil {
		return stoa.CreateOptions{}, &cli.UseError{Message: fmt.Sprintf("--to: there is no format %q", f.to),
			Hint: "stoa formats lists them"}
	}
	if f.to == "" && f.out == cli.Dash {
		return stoa.CreateOptions{}, &cli.UseError{Message: "for standard output, --to says which format to write",
			Hint: "for example --to arrow"}
	}
	if opts, err = f.memory(a, opts); err != nil {
		return stoa.CreateOptions{}, err
	}
	if opts, err = f.divide(a, opts); err != nil {
		return stoa.CreateOptions{}, err
	}
	return stoa.CreateOptions{Formats: a.Formats, To: f.to, Opts: opts, Alloc: cli.Pool, NoCheck: f.unchecked,
		Parallel: runtime.NumCPU()}, nil
}

// registerPieces adds the flag for writing tables as several files.
func (f *writeFlags) registerPieces(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.fileSize, "file-size", "", "with --all: write each table as a directory of files of "+
		"about `SIZE`, such as 1GiB, by tablet and key; --resume then continues after the last file")
}

// memory adds --memory to the writer's options, if the writer keeps much data in memory.
func (f *writeFlags) memory(a *cli.App, opts map[string]string) (map[string]string, error) {
	if f.mem == "" {
		return opts, nil
	}
	if _, err := cli.ParseSize("--memory", f.mem); err != nil {
		return nil, err
	}
	if _, ok := opts["memory"]; ok {
		return nil, cli.WrongUse("--memory and --opt memory say the same")
	}
	to := a.Format(f.to)
	if f.to == "" {
		to = stoa.ByExtension(a.Formats, f.out)
	}
	if to == nil {
		return opts, nil // creating the output reports the error
	}
	if !slices.ContainsFunc(to.WriteKeys, func(k format.OptionKey) bool { return k.Name == "memory" }) {
		return opts, nil // it holds at most a row group or block; what it opens has a budget
	}
	if opts == nil {
		opts = map[string]string{}
	}
	opts["memory"] = f.mem
	return opts, nil
}

// registerPartitions adds the flag for directories of partitions.
func (f *writeFlags) registerPartitions(cmd *cobra.Command) {
	f.registerPartitionBy(cmd)
	cmd.Flags().StringVar(&f.catalog, "catalog", "", "register the Iceberg table in a REST catalogue, "+
		"`rest:URL#NAMESPACE.TABLE`, when it is complete")
}

// registerPartitionBy adds the flag alone.
func (f *writeFlags) registerPartitionBy(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.partitions, "partition-by", "", "divide the rows by `COLUMNS`, such as y,region, into "+
		"directories NAME=VALUE; for Iceberg and Delta also \"day(ts), bucket(16, id)\", or source: as the source is")
}

// divide applies --partition-by: as an option of the writer if its format has partitions of its own, and else as the
// columns that become directories.
func (f *writeFlags) divide(a *cli.App, opts map[string]string) (map[string]string, error) {
	const key = "partition-by"
	if f.partitions == "" {
		return opts, nil
	}
	to := a.Format(f.to)
	if f.to == "" {
		if to = stoa.ByExtension(a.Formats, f.out); to == nil {
			to, f.to = a.Format("parquet"), "parquet"
		} else {
			return nil, &cli.UseError{Message: "--partition-by writes a directory, and -o " + f.out +
				" is a file's name", Hint: "-o DIR/ --to " + to.Name}
		}
	}
	if slices.ContainsFunc(to.WriteKeys, func(k format.OptionKey) bool { return k.Name == key }) {
		if opts[key] != "" {
			return nil, cli.WrongUse("--partition-by and --opt partition-by say the same")
		}
		if opts == nil {
			opts = map[string]string{}
		}
		opts[key] = f.partitions
		return opts, nil
	}
	if f.out == cli.Dash || to.Create == nil || len(to.Extensions) == 0 || to.Owns != nil && to.Levels > 0 {
		return nil, &cli.UseError{Message: "--partition-by writes directories of files; " + to.Name + " is no format " +
			"for that", Hint: "for example --to parquet -o DIR/"}
	}
	names, wanted := option.Split(f.partitions)
	if strings.Contains(quotedName.ReplaceAllString(f.partitions, ""), "(") {
		return nil, &cli.UseError{Message: "--partition-by: directories have whole columns, not terms such as " +
			f.partitions, Hint: "--to iceberg has terms"}
	}
	if wanted != "" {
		return nil, cli.WrongUse("--partition-by takes %s not %s", wanted, f.partitions)
	}
	f.by = names
	return opts, nil
}

// quotedName is the name of a column in quotation marks.
var quotedName = regexp.MustCompile(`"(""|[^"])*"`)
