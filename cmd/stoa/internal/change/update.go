package change

import (
	"errors"
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"

	"github.com/spf13/cobra"

	"stoa"
)

func UpdateCmd(a *cli.App) *cobra.Command {
	var where string
	var sets []string
	var unchecked bool
	cmd := &cobra.Command{
		Use:   "update STORE#DATABASE.TABLE --set COLUMN=VALUE --where PREDICATE",
		Short: "Change rows of a CarbonData table",
		Long: `Give columns new values in the rows that a predicate selects: as one change, the rows are
deleted, and added again in a new segment. A VALUE is text as in CSV, or 'quoted' as in a PREDICATE, and
must be exactly a value of the column's type; null without quotes is null.

Lists, maps, structs and bytes can only be set to null. The new rows are read back before they become part
of the table: if their number or a value differs, the status is 1 and the table is unchanged.`,
		Example: `  stoa update store#sales.orders --set status=paid --set "note=by hand" --where "id = 4711"
  stoa update store#sales.orders --set note=null --where "day < date '2020-01-01'"`,
		Args: cli.Wants(cobra.ExactArgs(1)),
	}
	cmd.Flags().StringArrayVar(&sets, "set", nil, "set a column to a value, `COLUMN=VALUE`; repeatable")
	cmd.Flags().StringVar(&where, "where", "", "change the rows for which `PREDICATE` is true (required)")
	cmd.Flags().BoolVar(&unchecked, "no-check", false,
		"do not read the new rows back to compare them with the wanted values")
	return onTable(a, cmd, func(t *target) error {
		if len(sets) == 0 {
			return &cli.UseError{Message: "--set says what changes; it is missing",
				Hint: "for example --set status=paid"}
		}
		values, err := SetValues(sets)
		if err != nil {
			return err
		}
		if err := wantsWhere(where); err != nil {
			return err
		}
		n, err := t.Update(t.ctx, stoa.UpdateOptions{Where: where, Set: values, NoCheck: unchecked,
			DryRun: t.dry})
		if err == nil {
			t.Rows = count(n)
			t.note("%s %s", display.Count(n, "row"), would(t.dry, "changed"))
		}
		return ofSet(err)
	}, "where", "set", "dry-run")
}

// ofSet turns an error about a new value into one about the flag that it was given by.
func ofSet(err error) error {
	var e *stoa.SetError
	switch {
	case !errors.As(err, &e):
		return err
	case e.Column == "":
		return cli.WrongUse("--set: %s", e.Reason)
	case e.Value == nil:
		return cli.WrongUse("--set %s: %s", e.Column, e.Reason)
	}
	return cli.WrongUse("--set %s=%s: %s", e.Column, *e.Value, e.Reason)
}

// SetValues parses COLUMN=VALUE. nil is null.
func SetValues(sets []string) (map[string]*string, error) {
	out := map[string]*string{}
	for _, s := range sets {
		name, v, ok := strings.Cut(s, "=")
		if strings.HasSuffix(name, " ") { // COLUMN = VALUE, as in a predicate
			v = strings.TrimSpace(v)
		}
		name = strings.ToLower(strings.TrimSpace(name))
		if _, duplicate := out[name]; duplicate || !ok || name == "" {
			return nil, cli.WrongUse("--set %s: write it as COLUMN=VALUE, each column once", s)
		}
		switch {
		case v == "null":
			out[name] = nil
			continue
		case len(v) > 1 && v[0] == v[len(v)-1] && (v[0] == '"' || v[0] == '\''):
			v = strings.ReplaceAll(v[1:len(v)-1], v[:1]+v[:1], v[:1])
		}
		out[name] = &v
	}
	return out, nil
}
