package display

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/apache/arrow-go/v18/arrow"
)

// TypeName returns a type in the words of `stoa schema`, which --source-opt schema=… accepts. Nested types are named by
// their kind and, in angle brackets, their contents; in JSON the children are separate (see TypeWord).
func TypeName(t arrow.DataType) string {
	word := TypeWord(t)
	if d, ok := t.(*arrow.DictionaryType); ok {
		return fmt.Sprintf("dictionary<%s, %s>", TypeName(d.IndexType), TypeName(d.ValueType))
	}
	if e, ok := t.(arrow.ExtensionType); ok {
		return word + "<" + TypeName(e.StorageType()) + ">"
	}
	children := ChildFields(t)
	if len(children) == 0 {
		return word
	}
	var parts []string
	for _, f := range children {
		s := TypeName(f.Type)
		if t.ID() == arrow.STRUCT || arrow.IsUnion(t.ID()) {
			s = plainName(f.Name) + ": " + s
		}
		if !f.Nullable && t.ID() != arrow.MAP && t.ID() != arrow.RUN_END_ENCODED {
			s += " not null"
		}
		parts = append(parts, s)
	}
	inner := "<" + strings.Join(parts, ", ") + ">"
	if l, ok := t.(*arrow.FixedSizeListType); ok {
		return fmt.Sprintf("%s%s[%d]", t.Name(), inner, l.Len())
	}
	return word + inner
}

// plainName quotes a name that is not plain.
func plainName(s string) string {
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_.- ", r) {
			return strconv.Quote(s)
		}
	}
	if s == "" || strings.TrimSpace(s) != s {
		return strconv.Quote(s)
	}
	return s
}

// TypeWord returns a type without its children: the word and its parameters. It includes every parameter of every Arrow
// type.
func TypeWord(t arrow.DataType) string {
	switch t := t.(type) {
	case *arrow.StringType:
		return "utf8"
	case *arrow.Float16Type:
		return "float16"
	case *arrow.FixedSizeBinaryType:
		return fmt.Sprintf("fixed_size_binary[%d]", t.ByteWidth)
	case arrow.DecimalType:
		return fmt.Sprintf("decimal%d(%d, %d)", t.BitWidth(), t.GetPrecision(), t.GetScale())
	case *arrow.TimestampType:
		if t.TimeZone != "" {
			return fmt.Sprintf("timestamp[%s, tz=%s]", t.Unit, t.TimeZone)
		}
		return fmt.Sprintf("timestamp[%s]", t.Unit)
	case *arrow.Time32Type:
		return fmt.Sprintf("time32[%s]", t.Unit)
	case *arrow.Time64Type:
		return fmt.Sprintf("time64[%s]", t.Unit)
	case *arrow.DurationType:
		return fmt.Sprintf("duration[%s]", t.Unit)
	case *arrow.FixedSizeListType:
		return fmt.Sprintf("fixed_size_list[%d]", t.Len())
	case *arrow.MapType:
		if t.KeysSorted {
			return "map[sorted]"
		}
		return "map"
	case *arrow.DictionaryType:
		if t.Ordered {
			return "dictionary[ordered]"
		}
		return "dictionary"
	case arrow.UnionType:
		return fmt.Sprintf("%s[%s]", t.Name(), codes(t.TypeCodes()))
	case arrow.ExtensionType:
		return "extension[" + t.ExtensionName() + "]"
	}
	return t.Name()
}

func codes(c []arrow.UnionTypeCode) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(c), " ", ","), "[]")
}

// ChildFields returns the fields in a type: a list's element, a map's key and value, the fields of a struct or union,
// the run ends and values of a run-end encoded type, the index and the values of a dictionary.
func ChildFields(t arrow.DataType) []arrow.Field {
	switch t := t.(type) {
	case *arrow.MapType:
		return []arrow.Field{t.KeyField(), t.ItemField()}
	case *arrow.DictionaryType:
		return []arrow.Field{{Name: "index", Type: t.IndexType}, {Name: "value", Type: t.ValueType, Nullable: true}}
	case arrow.ExtensionType:
		return []arrow.Field{{Name: "storage", Type: t.StorageType(), Nullable: true}}
	case arrow.NestedType:
		return t.Fields()
	}
	return nil
}
