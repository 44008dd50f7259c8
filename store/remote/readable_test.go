package remote

import (
	"fmt"
	"testing"
)

// TestReadable: which of the objects of an unfinished directory may be removed, for every way in which a lake and other
// directories appear, are used by others, or are left.
func TestReadable(t *testing.T) {
	lake := []string{"data/0.parquet", "metadata/m0.avro", "metadata/v1.metadata.json", "metadata/version-hint.text",
		"_delta_log/00000000000000000000.json"}
	plain := []string{"a.cfile", "b.cfile", "table.json"}
	for _, c := range []struct {
		what  string
		doc   []string
		there []string
		want  bool
	}{
		{"nothing", lake, nil, false},
		{"all but the catalogues", lake, []string{lake[0], lake[1], lake[3]}, false},
		{"the first catalogue", lake, lake[:4], true},
		{"the second one alone", lake, []string{lake[0], lake[1], lake[3], lake[4]}, true},
		{"all", lake, lake, true},
		{"a catalogue that came late, by a request that was cut off", lake, []string{lake[2]}, false},
		{"data that another engine has replaced", lake, []string{lake[1], lake[2], lake[3],
			"metadata/00001-a.metadata.json", "data/1.parquet"}, true},
		{"metadata that another engine has removed", lake, []string{"metadata/00007-a.metadata.json.gz", lake[0]},
			true},
		{"a table that another engine has made there", lake, []string{lake[0], "metadata/00000-a.metadata.json"}, true},
		{"files of others without a catalogue", lake, []string{lake[0], lake[1], "notes.txt"}, false},
		{"not the last object", plain, plain[:2], false},
		{"the last object", plain, plain, true},
		{"the last object, late", plain, plain[2:], false},
		{"the last object, and files of others", plain, []string{plain[0], plain[2], "c.cfile"}, true},
	} {
		there := map[string]Object{"w/t/" + Unfinished: {}, "w/t/" + probe + "1": {}, "w/other": {}, "w/t/": {}}
		for _, name := range c.there {
			there["w/t/"+name] = Object{Key: "w/t/" + name}
		}
		doc := unfinished{Objects: c.doc}
		if got := doc.readable("w/t", there); got != c.want {
			t.Errorf("%s: got %t", c.what, got)
		}
	}
}

// TestReadableHistory: a history is there as soon as it is whole, and not before: by the newest metadata of Iceberg, or
// the first version of a Delta log.
func TestReadableHistory(t *testing.T) {
	log := func(n int) string { return fmt.Sprintf("_delta_log/%020d.json", n) }
	data, hint := "data/0.parquet", "metadata/version-hint.text"
	iceberg := []string{data, hint, "metadata/v10.metadata.json", "metadata/v8.metadata.json",
		"metadata/v9.metadata.json"}
	delta := []string{data, log(1), log(2), log(0)}
	for _, c := range []struct {
		what       string
		doc, there []string
		want       bool
	}{
		{"no metadata", iceberg, iceberg[:2], false},
		{"the newest metadata", iceberg, iceberg[:3], true},
		{"older metadata", iceberg, []string{data, hint, iceberg[3], iceberg[4]}, false},
		{"older metadata, and those of others", iceberg, []string{hint, iceberg[3], "metadata/v11.metadata.json"},
			true},
		{"no first version", delta, delta[:3], false},
		{"the first version", delta, delta, true},
		{"a log that others have shortened", delta, []string{data, log(2), log(3), "_delta_log/_last_checkpoint"},
			true},
	} {
		there := map[string]Object{}
		for _, name := range c.there {
			there["w/t/"+name] = Object{Key: "w/t/" + name}
		}
		doc := unfinished{Objects: c.doc}
		if got := doc.readable("w/t", there); got != c.want {
			t.Errorf("%s: got %t", c.what, got)
		}
	}
}
