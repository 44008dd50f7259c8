package change

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
)

// AlterColumn renames a column of the table in dir, or makes its type wider: int to bigint, a decimal of more digits.
// Nothing is written but the schema: data files have columns by their ids. A column that does not exist, a name that is
// taken, another type, and a bucket or partition column are Invalid.
func AlterColumn(ctx context.Context, dir string, c format.ColumnChange, dry bool) error {
	if c.Name == "" && c.Type == nil {
		return fault.Invalidf("expected a new name or type of column %s, found neither", c.Column)
	}
	return changeSchema(ctx, dir, dry, func(t *layout.TableSchema) error {
		at, err := alterable(t, dir, c.Column)
		if err != nil {
			return err
		}
		n := 1
		for more := t.Columns[at].NumChild; more > 0; more-- {
			more += t.Columns[at+n].NumChild
			n++
		}
		e := layout.Evolution{Stamp: status.NowMillis(), Removed: slices.Clone(t.Columns[at : at+n])}
		if c.Type != nil {
			if err := checkNamed(dir, "are read with their types: CarbonData could not read it"); err != nil {
				return err
			}
			if err := widen(&t.Columns[at], *c.Type); err != nil {
				return err
			}
			if err := checkDefault(&schema.Column{ColumnSchema: &t.Columns[at]}); err != nil {
				return err
			}
		}
		if c.Name != "" {
			err := checkNamed(dir, "are found by their names: under another name this one would be null")
			if err != nil {
				return err
			}
			if err := renameColumn(t, t.Columns[at:at+n], strings.ToLower(c.Name), dir); err != nil {
				return err
			}
		}
		e.Added = slices.Clone(t.Columns[at : at+n])
		t.History = append(t.History, e)
		return nil
	})
}

// checkNamed returns Unsupported if the table has a Parquet segment, in which columns are not found by their ids, nor
// widened; why says so.
func checkNamed(dir, why string) error {
	s, err := status.ReadEntries(status.StatusPath(dir))
	if err != nil {
		return err
	}
	for _, x := range s {
		if e := status.StatusEntry(x); e.Counts() && strings.EqualFold(e.Text("fileFormat"), Parquet) {
			return fault.Unsupportedf(fault.Span{Object: status.StatusPath(dir)}, "", "segment %s is Parquet, in "+
				"which columns %s", e.Text("loadName"), why)
		}
	}
	return nil
}

// alterable returns the index of a column whose name or type may be changed.
func alterable(t *layout.TableSchema, dir, name string) (int, error) {
	c := t.FindColumn(name)
	if c == nil {
		return 0, fault.Invalidf("the table %s has no column %q", dir, name)
	}
	if err := fixedBySpatial(t, name); err != nil {
		return 0, err
	}
	used := slices.Clone(t.BucketBy)
	if t.Partition != nil {
		used = append(used, t.Partition.Columns...)
	}
	if slices.ContainsFunc(used, func(x layout.ColumnSchema) bool { return x.ID == c.ID }) {
		return 0, fault.Invalidf("%s is a bucket or partition column of %s: it cannot be changed", name, dir)
	}
	return slices.IndexFunc(t.Columns, func(x layout.ColumnSchema) bool { return x.ID == c.ID }), nil
}

// renameColumn renames the column at the beginning of list, and its children, whose names begin with that of the
// column.
func renameColumn(t *layout.TableSchema, list []layout.ColumnSchema, name, dir string) error {
	old := list[0].Name
	if x := t.FindColumn(name); x != nil && x.ID != list[0].ID {
		return fault.Invalidf("the table %s has a column %q", dir, name)
	}
	if err := checkName(name); err != nil {
		return err
	}
	for i := range list {
		if rest, ok := strings.CutPrefix(list[i].Name, old); ok {
			list[i].Name = name + rest
		}
	}
	for k, v := range t.Properties {
		switch {
		case strings.EqualFold(k, "default.value."+old):
			delete(t.Properties, k)
			t.Properties["default.value."+name] = v
		case slices.Contains(namingProperties, strings.ToLower(k)):
			names := strings.Split(v, ",")
			for i := range names {
				if strings.EqualFold(strings.TrimSpace(names[i]), old) {
					names[i] = name
				}
			}
			t.Properties[k] = strings.Join(names, ",")
		}
	}
	t.RenameLong(old, name)
	return nil
}

// checkDefault returns Invalid if a column's default is not a value of its type.
func checkDefault(c *schema.Column) error {
	v, err := schema.DefaultValue(c)
	if err == nil && c.Type == layout.TypeDecimal && !v.D.FitsInPrecision(c.Precision) {
		err = fault.Invalidf("%s has more than %d digits", v.D.ToString(c.Scale), c.Precision)
	}
	if err != nil {
		return fault.Invalidf("the default of column %s: %v", c.Name, err)
	}
	return nil
}

// checkName returns an error if a column cannot be created with the name.
func checkName(name string) error {
	if strings.TrimSpace(name) == "" {
		return fault.Invalidf("the name %q of a column is blank", name)
	}
	o := schema.DefaultWriteOptions()
	f := arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int32}
	_, err := schema.PlanColumns(arrow.NewSchema([]arrow.Field{f}, nil), &o)
	return err
}

// widen changes a column's type to that of f, which must be able to hold all values of the current type.
func widen(c *layout.ColumnSchema, f arrow.Field) error {
	o := schema.DefaultWriteOptions()
	f.Name = c.Name
	list, err := schema.PlanColumns(arrow.NewSchema([]arrow.Field{f}, nil), &o)
	if err != nil {
		return err
	}
	to := &list[0]
	switch {
	case c.HasGlobalDictionary():
		return fault.Invalidf("column %s has a global dictionary: its type cannot be changed", c.Name)
	case c.Type == layout.TypeInt && to.Type == layout.TypeLong:
	case c.Type == layout.TypeDecimal && to.Type == layout.TypeDecimal && to.Scale >= c.Scale &&
		to.Precision-to.Scale >= c.Precision-c.Scale && (to.Scale > c.Scale || to.Precision > c.Precision):
	case c.Type == layout.TypeDecimal:
		return fault.Invalidf("column %s is decimal(%d,%d): expected a decimal with more digits, and no fewer on "+
			"either side of the point", c.Name, c.Precision, c.Scale)
	case c.Type == layout.TypeInt:
		return fault.Invalidf("column %s is an int: expected the type bigint", c.Name)
	default:
		return fault.Invalidf("column %s is of type %s: only int can become bigint, and a decimal one of more digits",
			c.Name, c.Type)
	}
	c.Type, c.Precision, c.Scale = to.Type, to.Precision, to.Scale
	return nil
}

// fixedProperties are properties that describe what is in the files, or what CarbonData derived from the table.
var fixedProperties = []string{"sort_columns", "long_string_columns", "dictionary_include", "dictionary_exclude",
	"inverted_index", "no_inverted_index", "flat_folder", "spatial_index", "indextableexists",
	"indexexists",
	"relatedmvtablesmap", "parentmaintablename", "parentmaintableid", "parentmaintabletablepath", "tablepath",
	"external", "_external", "index_columns", "isindextable", "indexinfo"}

// SetProperties sets properties of the table in dir; nil removes one. Properties that describe what is in the files,
// impossible values, and the removal of a property that is not set are Invalid.
func SetProperties(ctx context.Context, dir string, props map[string]*string, dry bool) error {
	if len(props) == 0 {
		return fault.Invalidf("no property is to be set")
	}
	return changeSchema(ctx, dir, dry, func(t *layout.TableSchema) error {
		given := map[string]string{}
		for _, k := range slices.Sorted(maps.Keys(props)) {
			low := strings.ToLower(k)
			if slices.Contains(fixedProperties, low) || strings.HasPrefix(low, "bucket") ||
				strings.HasPrefix(low, "default.value.") || strings.HasPrefix(low, "spatial_index") {
				return fault.Invalidf("carbon: property %s cannot be changed: it describes data that exists", k)
			}
			old := slices.IndexFunc(layout.SortedKeys(t.Properties),
				func(x string) bool { return strings.EqualFold(x, k) })
			if props[k] == nil && old < 0 {
				return fault.Invalidf("the table %s has no property %s", dir, k)
			}
			if old >= 0 {
				delete(t.Properties, layout.SortedKeys(t.Properties)[old])
			}
			if low == "streaming" && (props[k] == nil || !strings.EqualFold(*props[k], "true")) {
				if err := checkNoStreams(dir); err != nil {
					return err
				}
			}
			if v := props[k]; v != nil {
				given[k], t.Properties[k] = *v, *v
			}
		}
		if err := checkProperties(given); err != nil {
			return err
		}
		if err := checkColumnNames(t, given); err != nil {
			return err
		}
		if t.Buckets > 0 && t.Properties["sort_scope"] != "" {
			return fault.Invalidf("carbon: a table with buckets cannot have the property sort_scope")
		}
		if given["sort_scope"] != "" {
			if err := checkGlobalSort(t); err != nil {
				return err
			}
		}
		if _, err := OptionsOf(t, nil); err != nil {
			return err
		}
		t.History = append(t.History, layout.Evolution{Stamp: status.NowMillis()})
		return nil
	})
}
