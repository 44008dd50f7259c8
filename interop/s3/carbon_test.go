//go:build interop

package s3

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/interop/places"
)

// TestCarbon: CarbonData under Spark reads through s3a what stoa made and changed in a bucket, changes it, and reads
// again what stoa then changed.
func TestCarbon(t *testing.T) {
	g := start(t)
	conf := t.TempDir()
	endpoint := withoutDirectories(t, g.endpoint)
	text := "<?xml version=\"1.0\"?>\n<configuration>\n"
	for k, v := range map[string]string{"fs.s3a.endpoint": endpoint, "fs.s3a.access.key": "key",
		"fs.s3a.secret.key": "secretsecret", "fs.s3a.path.style.access": "true",
		"fs.s3a.connection.ssl.enabled": "false"} {
		text += fmt.Sprintf("<property><name>%s</name><value>%s</value></property>\n", k, v)
	}
	if err := os.WriteFile(filepath.Join(conf, "core-site.xml"), []byte(text+"</configuration>\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(g.dir, "store"), 0o777); err != nil {
		t.Fatal(err)
	}
	j := places.Judge{T: t, Stoa: g.run, Place: "s3://bucket/store", Store: "s3a://bucket/store", Conf: conf}
	j.Run()
}

// deletions is the answer to a request that deletes several objects.
type deletions struct {
	XMLName xml.Name `xml:"DeleteResult"`
	Deleted []deleted
	Error   []notDeleted
}

type deleted struct{ Key string }

type notDeleted struct{ Key, Code, Message string }

// withoutDirectories returns the address of a proxy that corrects the one thing in which versitygw differs from S3 so
// far that s3a cannot write to it: S3 has no directories, and deleting an object that is not there succeeds. s3a
// deletes "a/" whenever it has written "a/b". versitygw has a directory of that name, and answers that it is not empty,
// which s3a takes for a passing failure, and repeats for minutes.
func withoutDirectories(t *testing.T, endpoint string) string {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(r *http.Response) error {
		asked := r.Request
		if asked.Method != http.MethodPost || !asked.URL.Query().Has("delete") || r.StatusCode != http.StatusOK {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		r.Body.Close()
		var got, told deletions
		if err := xml.Unmarshal(body, &got); err != nil {
			return err
		}
		told.Deleted = got.Deleted
		for _, e := range got.Error {
			if e.Code == "ErrDirectoryNotEmpty" && strings.HasSuffix(e.Key, "/") {
				told.Deleted = append(told.Deleted, deleted{e.Key})
			} else {
				told.Error = append(told.Error, e)
			}
		}
		if body, err = xml.Marshal(told); err != nil {
			return err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Length", fmt.Sprint(len(body)))
		return nil
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL
}
