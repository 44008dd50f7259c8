package main

import (
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stoa/store/remote/remotetest"
	"stoa/store/web"
)

// altered has a server's answers to GET of objects changed: alter gets the header of the k-th of them.
func altered(h http.Handler, alter func(k int, head http.Header)) http.Handler {
	var k atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, ".trv") {
			h.ServeHTTP(w, r)
			return
		}
		no := int(k.Add(1))
		h.ServeHTTP(&alteredAnswer{w, func(head http.Header) { alter(no, head) }}, r)
	})
}

type alteredAnswer struct {
	http.ResponseWriter
	alter func(http.Header)
}

func (a *alteredAnswer) WriteHeader(status int) {
	a.alter(a.Header())
	a.ResponseWriter.WriteHeader(status)
}

// compressed has the answers of objects compressed on their way.
func compressed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, ".trv") {
			h.ServeHTTP(w, r)
			return
		}
		whole := httptest.NewRecorder()
		h.ServeHTTP(whole, r)
		for k, v := range whole.Header() {
			w.Header()[k] = v
		}
		w.Header().Del("Content-Length")
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(whole.Code)
		z := gzip.NewWriter(w)
		z.Write(whole.Body.Bytes())
		z.Close()
	})
}

// tagged gives objects an ETag, as most web servers do.
func tagged(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"the-tag"`)
		h.ServeHTTP(w, r)
	})
}

// TestAnswersThatSayLess: a server that leaves out or alters what its answers say of the version is read, as long as
// something says that the object is the same; otherwise the error says what the answer had, or lacked.
func TestAnswersThatSayLess(t *testing.T) {
	dir, name := bucketOf(t, "../../corpus/trevni/v1.12.2/avro_primitives.trv")
	want := said(dir, "cat", "-f", "jsonl", filepath.Join(dir, name))
	files, s3 := remotetest.Web(filepath.Dir(dir), web.Index), &remotetest.S3{Dir: filepath.Dir(dir)}
	anotherTime := func(k int, h http.Header) {
		h.Set("Last-Modified", time.Unix(1700000000+int64(k)*10, 0).UTC().Format(http.TimeFormat))
	}
	without := func(names ...string) func(int, http.Header) {
		return func(_ int, h http.Header) {
			for _, n := range names {
				h.Del(n)
			}
		}
	}
	both := func(k int, h http.Header) { h.Del("ETag"); anotherTime(k, h) }
	gzipped := func(_ int, h http.Header) { h.Set("Content-Encoding", "gzip") }
	for _, c := range []struct {
		what  string
		h     http.Handler
		s3    bool
		error string // "": the rows are right
	}{
		{"web, answers without the ETag", altered(tagged(files), without("ETag")), false, ""},
		{"web, other times with one ETag", altered(tagged(files), anotherTime), false, ""},
		{"web, answers with neither", altered(tagged(files), without("ETag", "Last-Modified")), false, ""},
		{"web, other times without ETags", altered(files, anotherTime), false, "its last change, and it has no ETag"},
		{"web, no ETag and another time", altered(tagged(files), both), false, "its last change, in an answer without"},
		{"web, compressed", compressed(tagged(files)), false, "compresses"},
		{"s3, answers without the ETag", altered(s3, without("ETag")), true, ""},
		{"s3, other times with one ETag", altered(s3, anotherTime), true, ""},
		{"s3, no ETag and another time", altered(s3, both), true, "its last change, in an answer without"},
		{"s3, stored compressed, as a header says", altered(s3, gzipped), true, ""},
		{"s3, compressed on the way", compressed(s3), true, "compresses"},
		{"s3, without the range", altered(s3, without("Content-Range")), true, ""},
		{"s3, without a time", altered(s3, without("Last-Modified")), true, "no time of the last change"},
	} {
		place := "s3://bucket"
		if asS3(t, c.h); !c.s3 {
			server := httptest.NewServer(c.h)
			defer server.Close()
			place = server.URL + "/bucket"
		}
		got := said(place, "cat", "-f", "jsonl", place+"/"+name)
		switch {
		case c.error == "" && got != want:
			t.Errorf("%s: %s", c.what, firstDifference(got, want))
		case c.error != "" && (!strings.HasSuffix(got, "status: 1") || !strings.Contains(got, c.error)):
			t.Errorf("%s: expected %q:\n%s", c.what, c.error, got)
		}
	}
}
