package rewrite

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/parquet/internal/meta"
)

// keyValues computes the key/value metadata of the output. They come from all files, and from the first one if several
// have the same key; the options' changes are applied and descriptions of dropped columns removed, as when rows are
// written anew. The Arrow schema, which contains them as well, is that of the kept columns.
func (j *Job) keyValues() error {
	var own, embedded []meta.KeyValue // in the footers, and in the Arrow schemas
	stored := -1                      // the file whose Arrow schema is used
	for i, s := range j.files {
		for _, p := range s.r.Footer.KeyValues {
			switch {
			case p.Key == meta.SealKey || p.Key == meta.PartKey:
			case p.Key != meta.StoredSchema:
				own = added(own, p)
			case stored < 0 && p.Value != nil:
				stored = i
			}
		}
		md := s.r.Shown.Metadata()
		for k, key := range md.Keys() {
			embedded = added(embedded, meta.KeyValue{Key: key, Value: &md.Values()[k]})
		}
	}
	columns := j.files[0].columns()
	shown, err := j.o.KeyValues.Apply(embedded, columns)
	if err != nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(own), func(p meta.KeyValue) bool {
		return p.Value != nil && !slices.ContainsFunc(shown, func(x meta.KeyValue) bool { return x.Key == p.Key })
	})
	for i, p := range kept { // the value in the schema may differ
		if p.Value != nil {
			value, _ := meta.CutToColumns(p.Key, *p.Value, columns)
			kept[i].Value = &value
		}
	}
	j.pairs = j.o.KeyValues.Replace(kept)
	if stored < 0 {
		return nil
	}
	text, err := j.files[stored].arrowSchema(shown)
	if err != nil {
		return err
	}
	j.pairs = append(j.pairs, meta.KeyValue{Key: meta.StoredSchema, Value: &text})
	return nil
}

// added appends a pair unless its key is already there.
func added(all []meta.KeyValue, p meta.KeyValue) []meta.KeyValue {
	if slices.ContainsFunc(all, func(x meta.KeyValue) bool { return x.Key == p.Key }) {
		return all
	}
	return append(all, p)
}

// columns returns the kept columns as the file has them.
func (s *source) columns() (fields []arrow.Field) {
	for _, f := range s.fields {
		field, _ := meta.Filled(s.r.Shown.Field(f))
		field, _ = meta.Grouped(field)
		fields = append(fields, field)
	}
	return fields
}

// arrowSchema returns the text of ARROW:schema for the kept columns with the given metadata; the file's own text if
// that is equivalent.
func (s *source) arrowSchema(pairs []meta.KeyValue) (string, error) {
	var keys, values []string
	for _, p := range pairs {
		keys, values = append(keys, p.Key), append(values, *p.Value)
	}
	md := arrow.NewMetadata(keys, values)
	if was := s.r.Shown.Metadata(); len(s.fields) == s.r.Shown.NumFields() && md.Equal(was) {
		for _, p := range s.r.Footer.KeyValues {
			if p.Key == meta.StoredSchema && p.Value != nil {
				return *p.Value, nil
			}
		}
	}
	return meta.EncodeSchema(arrow.NewSchema(s.columns(), &md))
}
