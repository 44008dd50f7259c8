package carbon

import (
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/format"
	"stoa/internal/scan"
	"stoa/store"
)

// TestDictionaryProperties has a table's properties say which columns get a local dictionary.
func TestDictionaryProperties(t *testing.T) {
	name := &column{columnSchema: &columnSchema{name: "name", typ: typeString}}
	inside := &column{columnSchema: &columnSchema{name: "s.x", typ: typeString}, parent: &column{columnSchema: &columnSchema{name: "s", typ: typeStruct}}}
	for _, c := range []struct {
		include, exclude string
		name, inside     bool
	}{{"", "", true, true}, {"NAME,", "", true, false}, {"s", "", false, true}, {"", " name", false, true}, {"name,s", "s", true, false}} {
		s := &tableSchema{properties: map[string]string{"local_dictionary_include": c.include, "local_dictionary_exclude": c.exclude}}
		o, err := s.options(nil)
		if err != nil || o.codes(name) != c.name || o.codes(inside) != c.inside {
			t.Errorf("%+v: %v, %v, %v", c, o.codes(name), o.codes(inside), err)
		}
	}
}

// TestBuckets holds the hash against the table that Spark put into four buckets.
func TestBuckets(t *testing.T) {
	rows := 0
	for bucket := range 4 {
		r, err := open(t.Context(), format.Target{Tree: store.Local{}, Name: "../../corpus/carbon/2.3.0/managed/managed_bucket"}, format.OpenOptions{Opts: map[string]string{"bucket": strconv.Itoa(bucket)}})
		if err != nil {
			t.Fatal(err)
		}
		src := scan.Source{Reader: r, Objects: scan.NewObjects(store.Local{}), Dicts: scan.NewDicts(), Limits: format.Limits{}.WithDefaults()}
		for b, err := range scan.Run(t.Context(), src, scan.Spec{Columns: []string{"name"}}, nil) {
			if err != nil {
				t.Fatal(err)
			}
			names := b.Column(0).(*array.String)
			for i := range names.Len() {
				h := int32(hashSeed)
				if names.IsValid(i) {
					h = murmurText([]byte(names.Value(i)))
				}
				if got := int(h%4+4) % 4; got != bucket {
					t.Errorf("%q: bucket %d, Spark has it in %d", names.Value(i), got, bucket)
				}
				rows++
			}
		}
	}
	if rows != 300 {
		t.Errorf("%d rows", rows)
	}
}

// TestSparkHash holds the hash of buckets against values that Spark's hash function gives.
func TestSparkHash(t *testing.T) {
	if got := murmurInt(42); got != 29417773 { // hash(42)
		t.Error(got)
	}
	if got := murmurText([]byte("Spark")); got != 228093765 { // hash('Spark')
		t.Error(got)
	}
}
