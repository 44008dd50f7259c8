package meta

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// unionKey is the metadata key of a field that was a union and is stored as a group, see Grouped. Its value is a
// unionMark in JSON.
const unionKey = "stoa:union"

// unionMark holds, by member, the properties of a union that its group does not express.
type unionMark struct {
	Names    []string              `json:"names"`
	Nullable []bool                `json:"nullable"`
	Codes    []arrow.UnionTypeCode `json:"codes"`
}

// Grouped returns a field in which each union, which Parquet lacks, is replaced by a struct with a nullable field for
// each member. At most one of these fields is not null in a row, as in Avro's and Spark's converters. The fields have
// the names of the members, unless two are equal or one is empty: then member0 and so on. any reports whether there was
// a union.
func Grouped(f arrow.Field) (out arrow.Field, any bool) {
	return MapFields(f, func(f arrow.Field) (arrow.Field, bool) {
		u, ok := f.Type.(arrow.UnionType)
		if !ok {
			return f, false
		}
		mark := unionMark{Codes: u.TypeCodes()}
		distinct := map[string]bool{"": true}
		plain := true
		for _, c := range u.Fields() {
			mark.Names, mark.Nullable = append(mark.Names, c.Name), append(mark.Nullable, c.Nullable)
			plain = plain && !distinct[c.Name]
			distinct[c.Name] = true
		}
		fields := make([]arrow.Field, len(mark.Names))
		for i, c := range u.Fields() {
			fields[i] = c
			if fields[i].Nullable = true; !plain {
				fields[i].Name = fmt.Sprintf("member%d", i)
			}
		}
		text, _ := json.Marshal(mark) // names and numbers can always be encoded
		f.Type, f.Nullable = arrow.StructOf(fields...), false
		pairs := f.Metadata.ToMap()
		pairs[unionKey] = string(text)
		f.Metadata = arrow.MetadataFrom(pairs)
		return f, true
	})
}

// Ungrouped is the inverse of Grouped; all unions become dense. A mark that does not match its struct, or one above
// another mark, is left as it is.
func Ungrouped(f arrow.Field) (out arrow.Field, any bool) {
	return MapFields(f, func(f arrow.Field) (arrow.Field, bool) {
		text, marked := f.Metadata.GetValue(unionKey)
		st, ok := f.Type.(*arrow.StructType)
		var mark unionMark
		if !marked || !ok || json.Unmarshal([]byte(text), &mark) != nil || !mark.fits(st) ||
			UnionBelow(st) {
			return f, false
		}
		fields := make([]arrow.Field, st.NumFields())
		for i, c := range st.Fields() {
			fields[i] = c
			fields[i].Name, fields[i].Nullable = mark.Names[i], mark.Nullable[i]
		}
		pairs := f.Metadata.ToMap()
		delete(pairs, unionKey)
		f.Type, f.Metadata = arrow.DenseUnionOf(fields, mark.Codes), arrow.MetadataFrom(pairs)
		return f, true
	})
}

// UnionBelow reports whether there is a union somewhere below a type. If one of two nested unions is stored as a group
// inside the other, a null of the outer cannot be distinguished from a null of the inner.
func UnionBelow(t arrow.DataType) bool {
	nested, ok := t.(arrow.NestedType)
	return ok && slices.ContainsFunc(nested.Fields(), func(f arrow.Field) bool {
		_, is := f.Type.(arrow.UnionType)
		return is || UnionBelow(f.Type)
	})
}

// fits reports whether the struct has the recorded members and the type codes are valid for a union.
func (m *unionMark) fits(st *arrow.StructType) bool {
	n := st.NumFields()
	if n == 0 || len(m.Names) != n || len(m.Nullable) != n || len(m.Codes) != n {
		return false
	}
	seen := map[arrow.UnionTypeCode]bool{}
	for i, c := range m.Codes {
		if c < 0 || seen[c] || !st.Field(i).Nullable {
			return false
		}
		seen[c] = true
	}
	return true
}
