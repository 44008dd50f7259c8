package change

import (
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// changeSchema reads the schema, calls change, and writes it, under its lock. With dry the schema is not written.
func changeSchema(ctx context.Context, dir string, dry bool, change func(t *layout.TableSchema) error) error {
	if dry {
		t, err := ReadTableSchema(dir)
		if err != nil {
			return err
		}
		return change(t)
	}
	unlock, err := status.Lock(ctx, dir, status.LockSchema, status.LockWait)
	if err != nil {
		return err
	}
	defer unlock()
	t, err := ReadTableSchema(dir)
	if err != nil {
		return err
	}
	if err := change(t); err != nil {
		return err
	}
	return status.ReplaceFile(filepath.Join(dir, "Metadata", "schema"), layout.ThriftBytes(t.Put))
}

// AddColumn adds a column to the table in dir; existing rows get the default, which is a text; null if def is nil. A
// column that exists, or a default that is not of its type, is Invalid.
func AddColumn(ctx context.Context, dir string, f arrow.Field, def *string) error {
	return addColumn(ctx, dir, f, def, false)
}

func addColumn(ctx context.Context, dir string, f arrow.Field, def *string, dry bool) error {
	return changeSchema(ctx, dir, dry, func(t *layout.TableSchema) error {
		f.Name = strings.ToLower(f.Name)
		if t.FindColumn(f.Name) != nil {
			return fault.Invalidf("the table %s has a column %q", dir, f.Name)
		}
		if err := checkName(f.Name); err != nil {
			return err
		}
		o := schema.DefaultWriteOptions()
		list, err := schema.PlanColumns(arrow.NewSchema([]arrow.Field{f}, nil), &o)
		if err != nil {
			return err
		}
		if list[0].Type.Complex() && def != nil {
			return fault.Invalidf("column %s: a %s has no default", f.Name, list[0].Type)
		}
		for i := range list {
			list[i].ID = newUUID()
			if list[i].Encoders.Has(layout.EncDirectDictionary) {
				list[i].Encoders[0], list[i].Encoders[1] = layout.EncDictionary, layout.EncDirectDictionary
			}
		}
		list[0].Ordinal = t.NextOrdinal()
		if def != nil {
			if list[0].Default, err = defaultBytes(&schema.Column{ColumnSchema: &list[0]}, *def); err != nil {
				return err
			}
			t.Properties["default.value."+f.Name] = *def
		}
		t.Columns = inCarbonOrder(append(t.Columns, list...))
		t.History = append(t.History, layout.Evolution{Stamp: status.NowMillis(), Added: slices.Clone(list)})
		return nil
	})
}

// inCarbonOrder sorts columns as CarbonData does: sort columns, other dimensions, long strings, nested ones, measures.
// CarbonData's loads fail for a table with any other order.
func inCarbonOrder(columns []layout.ColumnSchema) (out []layout.ColumnSchema) {
	var lists [5][]layout.ColumnSchema
	for i := 0; i < len(columns); {
		c, kind := &columns[i], schema.ListDimension
		switch {
		case c.SortColumn():
			kind = schema.ListSort
		case c.Type.Complex():
			kind = schema.ListComplex
		case c.Type == layout.TypeVarchar:
			kind = schema.ListVarchar
		case !c.Dimension:
			kind = schema.ListMeasure
		}
		end := i + 1
		for more := c.NumChild; more > 0 && end < len(columns); more-- { // its children follow
			more += columns[end].NumChild
			end++
		}
		lists[kind] = append(lists[kind], columns[i:end]...)
		i = end
	}
	return slices.Concat(lists[:]...)
}

// defaultBytes encodes a default for the schema; see schema.DefaultValue. A value that a load into the column would
// refuse, or that would be read as null, is Invalid: compactions write defaults as values.
func defaultBytes(c *schema.Column, s string) ([]byte, error) {
	v, err := page.ParseConstant(c, s)
	if err == nil && (math.IsNaN(v.F) || math.IsInf(v.F, 0)) {
		err = fault.Invalidf("%q would be read as null", s)
	}
	if err == nil && c.Type != layout.TypeBinary && !utf8.ValidString(s) {
		err = fault.Invalidf("%q is not UTF-8", s)
	}
	if err == nil {
		err = storable(c, s)
	}
	if err != nil {
		return nil, fault.Invalidf("the default of column %s: %v", c.Name, err)
	}
	switch c.Type {
	case layout.TypeBoolean:
		return []byte(strconv.FormatBool(v.I != 0)), nil
	case layout.TypeTimestamp:
		return binary.BigEndian.AppendUint64(nil, uint64(v.I)^1<<63), nil
	case layout.TypeDate:
		return []byte(strconv.FormatInt(v.I+schema.DateOffset, 10)), nil
	case layout.TypeDecimal:
		return page.DecimalBytes(v.D, c.Scale), nil
	}
	return []byte(s), nil
}

// storable returns an error if a text is not a value that a load can write into a column.
func storable(c *schema.Column, s string) error {
	var b array.Builder = array.NewStringBuilder(memory.DefaultAllocator)
	if c.Type == layout.TypeBinary {
		b = array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	}
	defer b.Release()
	b.(interface{ AppendString(s string) }).AppendString(s)
	a := b.NewArray()
	defer a.Release()
	x, o := page.NewCells(c), schema.DefaultWriteOptions()
	if err := x.Add(c, a, 0, 1, &o); err != nil {
		return err
	}
	return x.CheckEmptyBytes(c)
}

// fixedBySpatial returns Invalid if a geohash index consists of a column, or is computed from it.
func fixedBySpatial(t *layout.TableSchema, name string) error {
	if x := t.Spatial(); x.Uses(name) {
		return fault.Invalidf("column %s belongs to the geohash index %s: it cannot be changed", name, x.Column)
	}
	return nil
}

// DropColumn drops a column from the table in dir; its data stays in the files. A column that does not exist, the only
// one, and a sort, bucket or partition column are Invalid.
func DropColumn(ctx context.Context, dir, name string) error {
	return dropColumn(ctx, dir, name, false)
}

func dropColumn(ctx context.Context, dir, name string, dry bool) error {
	return changeSchema(ctx, dir, dry, func(t *layout.TableSchema) error {
		c := t.FindColumn(name)
		if c == nil {
			return fault.Invalidf("the table %s has no column %q", dir, name)
		}
		if err := fixedBySpatial(t, name); err != nil {
			return err
		}
		used := slices.Clone(t.BucketBy)
		if t.Partition != nil {
			used = append(used, t.Partition.Columns...)
		}
		if c.SortColumn() || slices.ContainsFunc(used, func(x layout.ColumnSchema) bool { return x.ID == c.ID }) {
			return fault.Invalidf("%s is a sort, bucket or partition column of %s: it cannot be dropped", name, dir)
		}
		left := 0
		for i := range t.Columns {
			if t.Columns[i].Ordinal >= 0 && !t.Columns[i].Invisible {
				left++
			}
		}
		if left == 1 {
			return fault.Invalidf("%s is the only column of %s", name, dir)
		}
		e := layout.Evolution{Stamp: status.NowMillis()}
		at := slices.IndexFunc(t.Columns, func(x layout.ColumnSchema) bool { return x.ID == c.ID })
		for n := int32(1); n > 0; n-- {
			e.Removed = append(e.Removed, t.Columns[at])
			n += t.Columns[at].NumChild
			t.Columns[at].Invisible = true
			at++
		}
		t.History = append(t.History, e)
		return nil
	})
}
