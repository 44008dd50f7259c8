package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"stoa/store/remote/remotetest"
)

// TestFailingStoresLeaveNoOutput: if the objects of a source are replaced while it is read, no verb that ends with 1
// leaves a file: readers that tolerate damage would have left rows out of it.
func TestFailingStoresLeaveNoOutput(t *testing.T) {
	for _, uri := range []string{"../../corpus/carbon/2.3.0/managed/managed_del", "../../corpus/redfile/red1/flat.red",
		"../../corpus/trevni/v1.12.2/avro_primitives.trv", "../../corpus/kudu/1.18.1/d_minor"} {
		dir, name := bucketOf(t, uri)
		kept := 0
		for _, verb := range [][]string{{"recover", "-q"}, {"convert", "-q", "--damaged", "skip-rows"},
			{"cat", "-q", "--damaged", "skip-rows"}, {"seal", "-q"}} {
			want := said(dir, "cat", "-q", "-f", "jsonl", filepath.Join(dir, name))
			for k := range 12 {
				s3 := &changing{S3: &remotetest.S3{Dir: filepath.Dir(dir)}}
				s3.at.Store(int64(k + 1))
				asS3(t, s3)
				out := filepath.Join(t.TempDir(), "out.jsonl")
				got := said("s3://bucket", append(verb, "s3://bucket/"+name, "-o", out)...)
				_, err := os.Stat(out)
				switch status := got[strings.LastIndexByte(got, ' ')+1:]; {
				case status == "1" && err == nil:
					t.Errorf("%v of %s, changed before request %d, leaves a file: %s", verb, uri, k+1, got)
				case status == "0" && verb[0] == "seal":
					kept++
				case status == "0":
					kept++
					if rows := said(dir, "cat", "-q", "-f", "jsonl", out); rows != want {
						t.Errorf("%v of %s: %s", verb, uri, firstDifference(rows, want))
					}
				case status != "1":
					t.Errorf("%v of %s, changed before request %d: %s", verb, uri, k+1, got)
				}
			}
		}
		t.Logf("%s: %d outputs", uri, kept)
	}
}

// changing is a store in which every object is replaced before a request.
type changing struct {
	*remotetest.S3
	at, n atomic.Int64
}

func (c *changing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.n.Add(1) == c.at.Load() {
		c.Version.Add(1)
	}
	c.S3.ServeHTTP(w, r)
}
