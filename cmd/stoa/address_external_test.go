package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"stoa/store/remote/remotetest"
)

// TestPlacesNamedByObjects: where a table's own files say that a partition lies outside of the place that was named,
// nothing is asked for there without --allow-external, and other buckets and hosts are never asked.
func TestPlacesNamedByObjects(t *testing.T) {
	plain := said("nowhere", "cat", "-q", "-f", "jsonl", "../../corpus/carbon/2.3.0/managed/managed_part")
	for _, c := range []struct {
		bucket, says string
		follows      bool // with --allow-external
	}{
		{"bucket", "s3://bucket/apart/country=c1", true},
		{"other", "s3://other/apart/country=c1", false},
		{"bucket", "http://store.test/bucket/apart/country=c1", false},
	} {
		root := t.TempDir()
		table := filepath.Join(root, "bucket", "t")
		if err := os.CopyFS(table, os.DirFS("../../corpus/carbon/2.3.0/managed/managed_part")); err != nil {
			t.Fatal(err)
		}
		apart := filepath.Join(root, c.bucket, "apart")
		if err := os.MkdirAll(apart, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(table+"/country=c1", apart+"/country=c1"); err != nil {
			t.Fatal(err)
		}
		sayElsewhere(t, table, c.says)
		var outside atomic.Int64
		s3 := &remotetest.S3{Dir: root}
		asS3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/apart/") || strings.HasPrefix(r.URL.Path, "/other") ||
				strings.HasPrefix(r.URL.Query().Get("prefix"), "apart") {
				outside.Add(1)
			}
			s3.ServeHTTP(w, r)
		}))
		cat := []string{"cat", "-q", "-f", "jsonl", "s3://bucket/t"}
		if got := said("nowhere", cat...); !strings.HasSuffix(got, "status: 1") ||
			!strings.Contains(got, "--allow-external") || outside.Load() > 0 {
			t.Errorf("%s: %d requests outside; %.300s", c.says, outside.Load(), got)
		}
		got := said("nowhere", append(cat, "--allow-external")...)
		switch {
		case c.follows && inOrder(got) != inOrder(plain):
			t.Errorf("%s, allowed: %s", c.says, firstDifference(inOrder(got), inOrder(plain)))
		case !c.follows && (!strings.HasSuffix(got, "status: 1") || outside.Load() > 0):
			t.Errorf("%s, allowed: %d requests outside; %.300s", c.says, outside.Load(), got)
		}
	}
}

func inOrder(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// sayElsewhere has the segment files of a table say that its partition country=c1 is elsewhere.
func sayElsewhere(t *testing.T, table, where string) {
	t.Helper()
	names, _ := filepath.Glob(table + "/Metadata/segments/0_*")
	if len(names) == 0 {
		t.Fatal("there is no segment file")
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if z, failed := gzip.NewReader(bytes.NewReader(b)); failed == nil {
			b, err = io.ReadAll(z)
		}
		if err != nil {
			t.Fatal(err)
		}
		var file map[string]any
		if err := json.Unmarshal(b, &file); err != nil {
			t.Fatal(err)
		}
		places := file["locationMap"].(map[string]any)
		for k, v := range places {
			if rest, ok := strings.CutPrefix(k, "/country=c1"); ok {
				v.(map[string]any)["isRelative"] = false
				delete(places, k)
				places[where+rest] = v
			}
		}
		if b, err = json.Marshal(file); err == nil {
			err = os.WriteFile(name, b, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
