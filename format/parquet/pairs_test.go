package parquet_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/meta"
	"stoa/store"
)

// withPairs writes a file with columns i, g and h, and key/value metadata, to a tree.
func withPairs(t *testing.T, tree *store.Memory, name string, pairs map[string]string) {
	t.Helper()
	md := arrow.MetadataFrom(pairs)
	var fields []arrow.Field
	for _, n := range []string{"i", "g", "h"} {
		fields = append(fields, arrow.Field{Name: n, Type: arrow.BinaryTypes.Binary})
	}
	sc := arrow.NewSchema(fields, &md)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	for _, f := range b.Fields() {
		f.(*array.BinaryBuilder).AppendValues([][]byte{[]byte("a"), []byte("b")}, nil)
	}
	w, err := stoa.Create(t.Context(), name, sc, stoa.CreateOptions{To: "parquet", Sink: tree.Sink(name)})
	if err == nil {
		if err = w.Write(t.Context(), b.NewRecordBatch()); err == nil {
			_, err = w.Close(t.Context())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pairsOf returns the key/value pairs in a file's footer, and those in its Arrow schema.
func pairsOf(t *testing.T, tree store.Tree, name string) (footer, shown map[string]string) {
	t.Helper()
	f, err := file.Open(t.Context(), format.Target{Tree: tree, Name: name}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	footer = map[string]string{}
	for _, p := range f.Footer.KeyValues {
		if p.Key != meta.StoredSchema && p.Key != meta.SealKey {
			footer[p.Key] = *p.Value
		}
	}
	return footer, f.Shown.Metadata().ToMap()
}

const geo = `{"version":"1.1.0","primary_column":"g","columns":{"g":{"encoding":"WKB","crs":{"a":"<"}},` +
	`"h":{"encoding":"WKB"}}}`

const avro = `{"type":"record","fields":[{"name":"i","type":"bytes"},{"name":"g","type":"bytes"}]}`

// TestPairs: key/value metadata is the same whether pages are copied or rows are rewritten: the keys of all files with
// the first value of each, changed as by the options, and metadata about columns without those of other columns.
func TestPairs(t *testing.T) {
	tree := store.NewMemory(nil)
	withPairs(t, tree, "a.parquet", map[string]string{"m": "1", "geo": geo, "avro.schema": avro, "x": "{"})
	withPairs(t, tree, "b.parquet", map[string]string{"m": "2", "n": "3"})
	type pairs = map[string]string
	all := pairs{"m": "1", "geo": geo, "avro.schema": avro, "x": "{"}
	joined := func(a, b pairs) pairs {
		out := maps.Clone(a)
		maps.Copy(out, b)
		return out
	}
	with := func(more pairs, without ...string) pairs {
		out := joined(all, more)
		for _, k := range without {
			delete(out, k)
		}
		return out
	}
	onlyH := pairs{"geo": `{"version":"1.1.0","primary_column":"h","columns":{"h":{"encoding":"WKB"}}}`,
		"avro.schema": `{"type":"record","fields":[{"name":"i","type":"bytes"}]}`}
	for _, c := range []struct {
		files, columns string
		opts           map[string]string
		want           pairs
	}{
		{"a.parquet", "", nil, all},
		{"a.parquet", "i h", nil, with(onlyH)},
		{"a.parquet", "h", nil, with(onlyH, "avro.schema")},
		{"a.parquet", "i", nil, with(onlyH, "geo")},
		{"b.parquet", "i", nil, pairs{"m": "2", "n": "3"}},
		{"a.parquet b.parquet", "", nil, with(pairs{"n": "3"})},
		{"b.parquet a.parquet", "i h", nil, joined(with(onlyH), pairs{"m": "2", "n": "3"})},
		{"a.parquet", "", pairs{"metadata": `m=4,"k=1,2",l==`}, with(pairs{"m": "4", "k": "1,2", "l": "="})},
		{"a.parquet", "", pairs{"drop-metadata": "geo,m"}, with(nil, "geo", "m")},
		{"a.parquet b.parquet", "i", pairs{"drop-metadata": "x", "metadata": "geo={}"},
			joined(with(onlyH, "x"), pairs{"n": "3", "geo": "{}"})},
	} {
		table, err := stoa.OpenAll(t.Context(), strings.Fields(c.files), stoa.OpenOptions{Tree: tree})
		if err != nil {
			t.Fatal(err)
		}
		spec := stoa.ScanSpec{}
		if c.columns != "" {
			spec.Columns = strings.Fields(c.columns)
		}
		o := stoa.CreateOptions{To: "parquet", Opts: c.opts, Sink: tree.Sink("copied")}
		if _, why, err := stoa.Copy(t.Context(), table, spec, "copied", o); why != "" || err != nil {
			t.Errorf("%+v: not copied: %s %v", c, why, err)
			continue
		}
		o.Sink = tree.Sink("anew")
		if _, err := stoa.Convert(t.Context(), table, spec, "anew", o); err != nil {
			t.Fatal(err)
		}
		table.Close()
		for _, name := range []string{"copied", "anew"} {
			footer, shown := pairsOf(t, tree, name)
			if !samePairs(footer, c.want) || !samePairs(shown, c.want) {
				t.Errorf("%s, -c %q, %v, %s: %v, the schema has %v; want %v", c.files, c.columns, c.opts, name,
					footer, shown, c.want)
			}
		}
	}
}

// samePairs compares pairs; JSON is compared by value.
func samePairs(a, b map[string]string) bool {
	return maps.EqualFunc(a, b, func(x, y string) bool {
		var p, q any
		if json.Unmarshal([]byte(x), &p) != nil || json.Unmarshal([]byte(y), &q) != nil {
			return x == y
		}
		v, _ := json.Marshal(p)
		w, _ := json.Marshal(q)
		return string(v) == string(w)
	})
}

// TestPairsAreRefused: invalid options for metadata are errors.
func TestPairsAreRefused(t *testing.T) {
	tree := store.NewMemory(nil)
	withPairs(t, tree, "a.parquet", map[string]string{"m": "1"})
	table, err := stoa.Open(t.Context(), "a.parquet", stoa.OpenOptions{Tree: tree})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	for _, c := range []struct{ key, value, want string }{
		{"metadata", "m", "not of the form KEY=VALUE"}, {"metadata", "=1", "not of the form KEY=VALUE"},
		{"metadata", "a=1,a=2", "twice"}, {"metadata", "ARROW:schema=x", "is reserved"},
		{"drop-metadata", "stoa.footer", "is reserved"}, {"drop-metadata", "M", "no such key"},
		{"row-group-rows", "0", "a number from 1 on"},
	} {
		o := stoa.CreateOptions{To: "parquet", Opts: map[string]string{c.key: c.value}, Sink: tree.Sink("out")}
		_, _, err := stoa.Copy(t.Context(), table, stoa.ScanSpec{}, "out", o)
		_, err2 := stoa.Convert(t.Context(), table, stoa.ScanSpec{}, "out", o)
		for _, err := range []error{err, err2} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s=%s: got %v, want %q", c.key, c.value, err, c.want)
			}
		}
	}
}
