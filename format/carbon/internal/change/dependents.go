package change

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
)

// dependents are what CarbonData makes of the rows of a table and keeps up to date with every change, by name. The
// properties of the table say that they exist; where they are, and whether they are used, Hive's metastore knows.
func dependents(t *layout.TableSchema) (out []string) {
	for name, value := range t.Properties {
		what := ""
		switch key := strings.ToLower(name); {
		case value == "" || value == "{}" || strings.EqualFold(value, "false"):
		case key == "indextableexists":
			what = "secondary index tables"
		case key == "indexexists":
			what = "bloom or Lucene indexes"
		case key == "relatedmvtablesmap":
			what = "materialised views " + value
		case key == "spatial_index":
			what = "the spatial index " + value
		case key == "parentmaintablename":
			what = "its main table " + value
		}
		if what != "" {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}

// refuseDependents is Unsupported if what depends on the rows of a table would be out of date, without CarbonData's
// knowing, after a change: its queries would take rows from there that are no longer right.
func refuseDependents(t *layout.TableSchema, dir string) error {
	if list := dependents(t); len(list) > 0 {
		return fault.Unsupportedf(fault.Span{Object: filepath.Join(dir, "Metadata", "schema")}, "",
			"the table has %s, which CarbonData keeps up to date with its rows and stoa does not: change it with "+
				"CarbonData, or drop them there first", strings.Join(list, " and "))
	}
	return nil
}

// checkIndependent is refuseDependents for the table at p, after checkReadable.
func checkIndependent(ctx context.Context, p format.TablePlace, except ...string) error {
	if err := checkReadable(ctx, p, except...); err != nil {
		return err
	}
	t, err := ReadTableSchema(p.Dir)
	if err != nil {
		return err
	}
	return refuseDependents(t, p.Dir)
}
