package kudufs

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/format/kudu"
	"stoa/format/kudu/internal/meta"
)

// tableOf is the metadata of the Kudu table that a schema comes from; the zero value if it comes from none.
func tableOf(sc *arrow.Schema) (t kudu.TableMeta, err error) {
	if v, ok := sc.Metadata().GetValue(kudu.MetaTable); ok {
		if err := json.Unmarshal([]byte(v), &t); err != nil {
			return t, fault.Invalidf("the schema's metadata %s cannot be parsed: %v", kudu.MetaTable, err)
		}
	}
	return t, nil
}

// schemaOf makes Kudu's schema of an Arrow schema, with the columns of the key first. from are the indexes of the
// fields of its columns. key names the primary key; nil: by the fields' metadata.
func schemaOf(sc *arrow.Schema, key []string) (s meta.Schema, from []int, err error) {
	if key == nil {
		key = keyOf(sc)
	}
	if len(key) == 0 {
		return s, nil, fault.Invalidf("Kudu's tables have a primary key: option key=COLUMN,… names its columns")
	}
	for _, k := range key {
		at := sc.FieldIndices(k)
		if len(at) != 1 {
			return s, nil, fault.Invalidf("key: there are %s named %q", fault.Count(len(at), "column"), k)
		}
		if slices.Contains(from, at[0]) {
			return s, nil, fault.Invalidf("key: column %q is named twice", k)
		}
		from = append(from, at[0])
	}
	for i, f := range sc.Fields() {
		if len(sc.FieldIndices(f.Name)) != 1 {
			return s, nil, fault.Invalidf("two columns are named %q", f.Name)
		}
		if !slices.Contains(key, f.Name) {
			from = append(from, i)
		}
	}
	for k, i := range from {
		c, err := meta.ColumnOf(sc.Field(i))
		if err != nil {
			return s, nil, err
		}
		if c.Array {
			return s, nil, fault.Unsupportedf(fault.Span{}, "", "column %q has type %s, and no release of Apache Kudu "+
				"has arrays", c.Name, sc.Field(i).Type)
		}
		if c.Key = k < len(key); c.Key {
			c.Nullable = false // Write refuses nulls
			if c.Type == cfile.Bool || c.Type == cfile.Float || c.Type == cfile.Double {
				return s, nil, fault.Invalidf("column %q cannot be in Kudu's primary key: its type is %s", c.Name,
					c.TypeText())
			}
		}
		s.Columns = append(s.Columns, c)
	}
	number(s.Columns)
	s.Index()
	return s, from, nil
}

// keyOf are the columns of the key, in order, by the metadata of fields that come from Kudu, up to the first missing
// one.
func keyOf(sc *arrow.Schema) (key []string) {
	for {
		i := slices.IndexFunc(sc.Fields(), func(f arrow.Field) bool {
			v, _ := f.Metadata.GetValue(kudu.MetaKey)
			return v == strconv.Itoa(len(key)+1)
		})
		if i < 0 {
			return key
		}
		key = append(key, sc.Field(i).Name)
	}
}

// number sets the ids of columns to their indexes, unless all columns have different ids already.
func number(columns []meta.Column) {
	seen := map[int32]bool{}
	for _, c := range columns {
		if c.ID >= 0 {
			seen[c.ID] = true
		}
	}
	if len(seen) == len(columns) {
		return
	}
	for i := range columns {
		columns[i].ID = int32(i)
	}
}

// nextID is the id that the next column of the table would get.
func nextID(columns []meta.Column) (id int32) {
	for _, c := range columns {
		id = max(id, c.ID+1)
	}
	return id
}
