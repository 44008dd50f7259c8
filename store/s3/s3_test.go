package s3

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"stoa/store/remote"
)

// served returns the client for a bucket of a server.
func served(t *testing.T, answer http.HandlerFunc) remote.Client {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	for k, v := range map[string]string{"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_REGION": "us-east-1", "AWS_ENDPOINT_URL_S3": s.URL, "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(k, v)
	}
	c, err := Open(t.Context(), remote.Address{Host: "bucket"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCompressedRange: a proxy that compresses an answer leaves its Content-Range as it was. Its bytes are not those of
// the range, and are not taken for them.
func TestCompressedRange(t *testing.T) {
	const size, off, n = 5000, 1000, 2000
	for _, compressed := range []bool{false, true} {
		c := served(t, func(w http.ResponseWriter, _ *http.Request) {
			body := bytes.Repeat([]byte("x"), n)
			if compressed {
				var b bytes.Buffer
				z := gzip.NewWriter(&b)
				z.Write(body)
				z.Close()
				body = b.Bytes()
				w.Header().Set("Content-Encoding", "gzip")
			}
			w.Header().Set("ETag", `"1"`)
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", off, off+n-1, size))
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			w.WriteHeader(http.StatusPartialContent)
			w.Write(body)
		})
		b, err := c.Get(t.Context(), remote.Object{Key: "k", Stamp: `"1"`}, "", off, n)
		if (err != nil) != compressed {
			t.Fatalf("compressed %t: %v", compressed, err)
		}
		if err == nil {
			got, err := io.ReadAll(b)
			if b.Close(); err != nil || len(got) != n || b.Off != off || b.Object.Size != size {
				t.Errorf("%d bytes from %d of %d, %v", len(got), b.Off, b.Object.Size, err)
			}
		}
	}
}

// TestListingWithoutEnd: a store that returns the same page of keys again and again is an error.
func TestListingWithoutEnd(t *testing.T) {
	c := served(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><Name>bucket</Name>`+
			`<KeyCount>2</KeyCount><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>`)
		for _, key := range []string{"d/a", "d/b"} {
			fmt.Fprintf(w, `<Contents><Key>%s</Key><Size>1</Size><ETag>"1"</ETag>`+
				`<LastModified>2006-01-02T15:04:05.000Z</LastModified></Contents>`, key)
		}
		fmt.Fprint(w, `</ListBucketResult>`)
	})
	for _, after := range []string{"", "d/b"} {
		page, _, err := c.List(t.Context(), "d/", after, false)
		if err == nil || !strings.Contains(err.Error(), "again") {
			t.Errorf("after %q: %d keys, %v", after, len(page), err)
		}
	}
}

// TestAnswersThatAreNoListing: what a proxy or a broken store sends instead of a page of a listing is an error, and not
// the last page, after which fewer objects would be there.
func TestAnswersThatAreNoListing(t *testing.T) {
	answer := ""
	c := served(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) })
	for _, text := range []string{"", "no XML", "<html><body>Please log in</body></html>",
		"<Error><Code>InternalError</Code></Error>", "<ListBucketResult/>",
		"<ListBucketResult><Contents><Key>d/a</Key></Contents></ListBucketResult>",
		"<ListBucketResult><IsTruncated>false</IsTruncated>"} {
		for _, after := range []string{"", "d/a"} {
			answer = text
			if page, more, err := c.List(t.Context(), "d/", after, false); err == nil {
				t.Errorf("%q after %q: %d keys, more: %t, and no error", text, after, len(page), more)
			}
		}
	}
	answer = "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
	if page, more, err := c.List(t.Context(), "d/", "", false); err != nil || more || len(page) > 0 {
		t.Errorf("an empty page: %d keys, more: %t, %v", len(page), more, err)
	}
}
