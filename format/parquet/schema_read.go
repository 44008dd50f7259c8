package parquet

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/arrowschema"
)

func (r *reader) decodeSchema(text, path string) (*arrow.Schema, error) {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return nil, err
	}
	return arrowschema.DecodeWithin(b, r.limits, r.footer, path)
}

// originalSchema is the schema under ARROW:schema, nil if there is none, or it is ignored. One with a type that
// Arrow's library does not know is no damage: it is left aside, as with ignore, and r.untyped says so.
func (r *reader) originalSchema() (orig *arrow.Schema, err error) {
	if r.untyped = nil; r.ignoreSchema {
		return nil, nil
	}
	for i, p := range r.meta.Pairs {
		if p.Key != meta.StoredSchema || p.Value == nil {
			continue
		}
		path := fmt.Sprintf("key_value_metadata[%d].%s", i, meta.StoredSchema)
		orig, err = r.decodeSchema(*p.Value, path)
		if errors.Is(err, fault.Limit) {
			return nil, err
		}
		if arrowschema.LongInteger(err) {
			r.untyped = &fault.Error{Class: fault.Corrupt, At: r.footer, Path: path,
				Reason: "columns are read as Parquet's own types", Cause: err}
			return nil, nil
		}
		if err != nil {
			return nil, &fault.Error{Class: fault.Corrupt, At: r.footer, Path: path,
				Reason: "(arrow-schema=ignore reads the file without it)", Cause: err}
		}
	}
	return orig, nil
}

// schemaMetadata is what the file says besides: the original schema's, and its own pairs.
func (r *reader) schemaMetadata(orig *arrow.Schema) arrow.Metadata {
	var keys, values []string
	if orig != nil {
		keys, values = slices.Clone(orig.Metadata().Keys()), slices.Clone(orig.Metadata().Values())
		if i := slices.Index(keys, meta.SealKey); i >= 0 { // of a file that this one was made of
			keys, values = slices.Delete(keys, i, i+1), slices.Delete(values, i, i+1)
		}
	}
	for _, p := range r.meta.Pairs {
		if p.Key != meta.StoredSchema && p.Key != meta.PartKey && p.Key != meta.SealKey && p.Value != nil && !slices.Contains(keys, p.Key) {
			keys, values = append(keys, p.Key), append(values, *p.Value)
		}
	}
	return arrow.NewMetadata(keys, values)
}
