package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"stoa/store/remote/remotetest"
)

// TestOnlyWhatWasNamedMayBeRead: a store that denies everything beside the named place, as policies of buckets do, is
// read like a disk.
func TestOnlyWhatWasNamedMayBeRead(t *testing.T) {
	for _, uri := range []string{"../../corpus/carbon/2.3.0/managed/managed_del",
		"../../corpus/kudu/1.18.1/d_minor", "../../format/kudu/testdata/file", "../../corpus/redfile/red1/dremel.red"} {
		dir, name := bucketOf(t, uri)
		s3 := &remotetest.S3{Dir: filepath.Dir(dir)}
		asS3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			k := strings.TrimPrefix(r.URL.Path, "/bucket/")
			if k == "" {
				k = r.URL.Query().Get("prefix")
			}
			if !strings.HasPrefix(k, name) {
				http.Error(w, "", http.StatusForbidden)
				return
			}
			s3.ServeHTTP(w, r)
		}))
		for _, verb := range [][]string{{"ls", "-f", "json"}, {"cat", "-f", "jsonl"}, {"verify"}} {
			want := said(dir, append(verb, filepath.Join(dir, name))...)
			if got := said("s3://bucket", append(verb, "s3://bucket/"+name)...); got != want {
				t.Errorf("%s of %s: %s", verb[0], uri, firstDifference(got, want))
			}
		}
	}
}
