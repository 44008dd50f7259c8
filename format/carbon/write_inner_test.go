package carbon

import (
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/format"
	"stoa/format/carbon/internal/change"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/table"
	"stoa/internal/scan"
	"stoa/store"
)

// TestDictionaryProperties: a table's properties decide which columns may have a local dictionary.
func TestDictionaryProperties(t *testing.T) {
	name := &schema.Column{ColumnSchema: &layout.ColumnSchema{Name: "name", Type: layout.TypeString}}
	inside := &schema.Column{ColumnSchema: &layout.ColumnSchema{Name: "s.x", Type: layout.TypeString},
		Parent: &schema.Column{ColumnSchema: &layout.ColumnSchema{Name: "s", Type: layout.TypeStruct}}}
	for _, c := range []struct {
		include, exclude string
		name, inside     bool
	}{{"", "", true, true}, {"NAME,", "", true, false}, {"s", "", false, true}, {"", " name", false, true},
		{"name,s", "s", true, false}} {
		s := &layout.TableSchema{Properties: map[string]string{"local_dictionary_include": c.include,
			"local_dictionary_exclude": c.exclude}}
		o, err := change.OptionsOf(s, nil)
		if err != nil || o.AllowsLocalDictionary(name) != c.name || o.AllowsLocalDictionary(inside) != c.inside {
			t.Errorf("%+v: %v, %v, %v", c, o.AllowsLocalDictionary(name), o.AllowsLocalDictionary(inside), err)
		}
	}
}

// TestBuckets compares the hash with a table that Spark wrote in four buckets.
func TestBuckets(t *testing.T) {
	rows := 0
	for bucket := range 4 {
		r, err := table.Open(t.Context(),
			format.Target{Tree: store.Local{}, Name: "../../corpus/carbon/2.3.0/managed/managed_bucket"},
			format.OpenOptions{Opts: map[string]string{"bucket": strconv.Itoa(bucket)}})
		if err != nil {
			t.Fatal(err)
		}
		src := scan.Source{Reader: r, Objects: scan.NewObjects(store.Local{}), Dicts: scan.NewDicts(),
			Limits: format.Limits{}.WithDefaults()}
		for b, err := range scan.Run(t.Context(), src, scan.Spec{Columns: []string{"name"}}, nil) {
			if err != nil {
				t.Fatal(err)
			}
			names := b.Column(0).(*array.String)
			for i := range names.Len() {
				h := int32(change.HashSeed)
				if names.IsValid(i) {
					h = change.MurmurText([]byte(names.Value(i)))
				}
				if got := int(h%4+4) % 4; got != bucket {
					t.Errorf("%q: got bucket %d, want %d", names.Value(i), got, bucket)
				}
				rows++
			}
		}
	}
	if rows != 300 {
		t.Errorf("got %d rows", rows)
	}
}

// TestSparkHash compares the hash of buckets with values of Spark's hash function.
func TestSparkHash(t *testing.T) {
	if got := change.MurmurInt(42); got != 29417773 { // hash(42)
		t.Error(got)
	}
	if got := change.MurmurText([]byte("Spark")); got != 228093765 { // hash('Spark')
		t.Error(got)
	}
}
