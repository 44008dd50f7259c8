package columnfile

import (
	"strconv"

	"stoa/format/cfile/internal/block"

	"github.com/apache/arrow-go/v18/arrow"
)

// CountKnown reports whether the number of values comes from the footer and not from the blocks that recovery found.
func (f *File) CountKnown() bool { return len(f.Foot) > 0 }

// Field returns the Arrow field of a column file. Options take precedence over the StoredField, and that over the
// footer.
func (f *File) Field(o ReadOptions) arrow.Field {
	s, _ := f.Footer.Stored()
	name := "value"
	switch {
	case o.Name != "":
		name = o.Name
	case s.Name != "":
		name = s.Name
	}
	if o.precision == 0 {
		o.precision = s.Precision
	}
	if o.Scale < 0 {
		o.Scale = s.Scale
	}
	t := f.Footer.Type.Arrow(o.precision, o.Scale)
	if f.Footer.Array() {
		t = arrow.ListOf(t)
	}
	if s.Type != "" {
		t = block.RestoredFrom(s.Type, t)
	}
	keys := []string{block.MetaType, block.MetaEncoding, block.MetaCompression, block.MetaVersion}
	vals := []string{f.Footer.Type.String(), f.Footer.Encoding.String(), f.Footer.Compression.String(),
		strconv.Itoa(f.Header.Version)}
	if s.Length > 0 {
		keys, vals = append(keys, block.MetaLength), append(vals, strconv.Itoa(s.Length))
	}
	if s.Holds != "" {
		keys, vals = append(keys, block.MetaHolds), append(vals, s.Holds)
	}
	nullable := f.Footer.Nullable || f.Footer.Array()
	if s.Nullable != nil && !f.Footer.Nullable {
		nullable = *s.Nullable
	}
	return arrow.Field{Name: name, Type: t, Nullable: nullable, Metadata: arrow.NewMetadata(keys, vals)}
}
