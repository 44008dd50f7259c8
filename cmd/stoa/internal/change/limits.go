package change

import (
	"github.com/spf13/cobra"

	"stoa/cmd/stoa/internal/cli"
	"stoa/format"
)

// limitFlags adds to a verb the flags that limit the resources for opening the table, unless the flags for its sources
// include them already.
func limitFlags(cmd *cobra.Command) {
	fl := cmd.Flags()
	if fl.Lookup("max-fields") == nil {
		fl.Int64("max-fields", 0,
			"refuse a table with more than `N` columns, the fields of nested ones counted (default 65536)")
		fl.Int64("max-depth", 0, "refuse a table with values nested more than `N` deep (default 64)")
	}
	if fl.Lookup("allow-external") == nil {
		fl.Bool("allow-external", false, "also read files of the table that are outside of its directory, such as "+
			"added segments")
	}
	fl.Bool("disable-dependents", false, "change the table though its materialised views, which are first marked as "+
		"disabled, and secondary index tables will be out of date")
	fl.Bool("assume-single-writer", false, "at an address: change the table even if its store cannot exclude a second "+
		"writer")
	if fl.Lookup("memory") == nil {
		fl.String("memory", "", "refuse a table that needs more than `SIZE` of memory to open (default 1GiB)")
	}
}

// limitsOf returns the limits given by flags.
func limitsOf(cmd *cobra.Command) (l format.Limits, err error) {
	fl := cmd.Flags()
	if l.Fields, err = fl.GetInt64("max-fields"); err != nil {
		return l, err
	}
	if l.Depth, err = fl.GetInt64("max-depth"); err != nil {
		return l, err
	}
	if l.Fields < 0 || l.Depth < 0 {
		return l, cli.WrongUse("--max-fields is a number of fields, --max-depth one of levels of nesting")
	}
	if m := fl.Lookup("memory"); m.Changed {
		l.Opening, err = cli.ParseSize("--memory", m.Value.String())
	}
	return l, err
}
