package delta_test

import (
	"strings"
	"testing"

	"stoa/format/delta"
	"stoa/format/internal/lake/laketest"
)

// TestListed: the metadata that `stoa meta` prints have the versions since the checkpoint, as the log says.
func TestListed(t *testing.T) {
	for table, want := range map[string]string{ // as in the commitInfo of each version
		"evolved": "version: 0 WRITE, version: 1 UPDATE, version: 2 WRITE",
		"parted":  "version: 3 WRITE"} { // the checkpoint is at 2
		var got []string
		for _, kv := range laketest.Open(t, delta.Format, "testdata/"+table, nil).Sources()[0].Meta {
			if strings.HasPrefix(kv.Key, "version: ") {
				when, what, _ := strings.Cut(kv.Value, ", ")
				got = append(got, kv.Key+" "+what)
				if len(when) != len("2026-11-27T20:02:34.350Z") {
					t.Errorf("%s: expected a time, found %q", kv.Key, kv.Value)
				}
			}
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: expected %q, found %q", table, want, s)
		}
	}
}

// TestSpark reads tables that Spark wrote, at each of their versions, as Spark read them: deletion vectors; checkpoints
// of version 2, in JSON, whose sidecars name the files; column mapping by id, with columns that were renamed (also
// nested ones and a partition), dropped and added again. interop/lake/spark_delta.py made them.
func TestSpark(t *testing.T) {
	for _, name := range []string{"spark-v2json", "spark-ids"} {
		laketest.Views(t, delta.Format, "testdata/"+name, "testdata/"+name+".json")
	}
}
