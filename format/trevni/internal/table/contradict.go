package table

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/schema"
	"stoa/internal/check"
	"stoa/region"
)

// contradictions returns findings about fields of the header that contradict another part of the file: each is damage,
// although everything can be read. It is not known which side is wrong: which of two names, or schema or columns.
func (t *Table) contradictions() (out []region.Finding) {
	h := &t.File.Header
	all := t.File.At.Sub(0, h.Size)
	r := check.Collect(context.Background(), t.name, layout.Codes, &out)
	if t.Plan.Mismatch != "" {
		code := "trevni.schema.mismatch"
		if t.Plan.NotShown {
			code = "trevni.schema.unknown"
		}
		r.Report(code, all, "file-metadata", "%s", t.Plan.Mismatch)
	}
	if left := t.File.At.Len - h.Size; len(h.Columns) == 0 && h.Rows > 0 && left > 0 {
		r.Report("trevni.header.contradiction", t.File.At.Sub(12, 4), "header.column-count",
			"no column, but %s, and %d bytes after the header that no column claims", fault.Count(h.Rows, "row"), left)
	}
	if key, at, ok := t.schemaUnderOtherKey(); ok {
		r.Report("trevni.header.contradiction", at, "file-metadata", "the value of key %q is an Avro schema of these "+
			"columns, or was one: the key is damaged", key)
	}
	reported := map[string]bool{}
	checkKeys := func(meta []layout.Pair, path string) {
		for _, p := range meta {
			key := cmp.Or(p.Stored, p.Key)
			if word := layout.NearestKey(key); word != "" && !reported[key] {
				reported[key] = true
				r.Report("trevni.header.contradiction", p.At, path,
					"a key %q, which is not a key of Trevni's, and nearly %q", key, word)
			}
		}
	}
	checkKeys(h.Meta, "file-metadata")
	for i := range h.Columns {
		checkKeys(h.Columns[i].Meta, fmt.Sprintf("column-metadata[%d]", i))
	}
	return out
}

// schemaUnderOtherKey finds an Avro schema that is stored under a key other than those for schemas. It must fit the
// columns; if the columns' names can only come from a schema, a damaged text that begins like one also counts.
func (t *Table) schemaUnderOtherKey() (key string, at fault.Span, ok bool) {
	h := &t.File.Header
	if _, named := layout.Get(h.Meta, "avro.schema"); named || h.Dialect != layout.Avro || len(h.Columns) == 0 {
		return "", at, false
	}
	made := slices.ContainsFunc(h.Columns, func(c layout.Column) bool { return strings.ContainsAny(c.Name, "#[>/") })
	for _, p := range h.Meta {
		if layout.NearestKey(p.Key) != "" || len(p.Value) == 0 || !strings.ContainsRune(`{["`, rune(p.Value[0])) {
			continue
		}
		if _, err := schema.PlanAvro(h, p.Value); err == nil || made && bytes.Contains(p.Value, []byte(`"type"`)) {
			return p.Key, p.At, true
		}
	}
	return "", at, false
}
