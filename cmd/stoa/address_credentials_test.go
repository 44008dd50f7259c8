package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"stoa/store/remote/remotetest"
)

// asked keeps the requests that a server got.
type asked struct {
	http.Handler
	mu  sync.Mutex
	all []*http.Request
}

func (a *asked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.all = append(a.all, r.Clone(r.Context()))
	a.mu.Unlock()
	a.Handler.ServeHTTP(w, r)
}

// each fails unless every request is as wanted.
func (a *asked) each(t *testing.T, what string, ok func(*http.Request) bool) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.all) == 0 {
		t.Errorf("%s: there was no request", what)
	}
	for _, r := range a.all {
		if !ok(r) {
			t.Errorf("%s: %s %s%s %v", what, r.Method, r.Host, r.URL, r.Header)
		}
	}
	a.all = nil
}

// TestCredentials: credentials, endpoint and style of addresses come from where Amazon's own tools have them, and a
// version of an object is the one that is read.
func TestCredentials(t *testing.T) {
	dir, name := bucketOf(t, "../../corpus/trevni/v1.12.2/avro_primitives.trv")
	a := &asked{Handler: &remotetest.S3{Dir: filepath.Dir(dir)}}
	signedBy := func(key string) func(*http.Request) bool {
		return func(r *http.Request) bool {
			return strings.Contains(r.Header.Get("Authorization"), "Credential="+key+"/")
		}
	}
	count := func(address string) {
		t.Helper()
		if got := said("nowhere", "count", address); !strings.HasPrefix(got, "60\n") {
			t.Error(got)
		}
	}
	address := "s3://bucket/" + name
	asS3(t, a)
	endpoint := os.Getenv("AWS_ENDPOINT_URL_S3")
	count(address)
	a.each(t, "keys", signedBy(testKey))

	t.Setenv("AWS_SESSION_TOKEN", "the-token")
	count(address)
	a.each(t, "a session", func(r *http.Request) bool { return r.Header.Get("X-Amz-Security-Token") == "the-token" })
	t.Setenv("AWS_SESSION_TOKEN", "")

	count(address + "?versionId=old.1")
	a.each(t, "a version", func(r *http.Request) bool {
		return r.URL.Query().Has("list-type") || r.URL.Query().Get("versionId") == "old.1"
	})

	t.Setenv("AWS_NO_SIGN_REQUEST", "true")
	count(address)
	a.each(t, "anonymous", func(r *http.Request) bool {
		return r.Header.Get("Authorization") == "" && r.URL.Query().Get("X-Amz-Signature") == ""
	})
	t.Setenv("AWS_NO_SIGN_REQUEST", "")

	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Run("profile", func(t *testing.T) {
		files := t.TempDir()
		write(t, files+"/config", "[profile cold]\nregion = eu-north-1\nendpoint_url = "+endpoint+"\n")
		write(t, files+"/credentials", "[cold]\naws_access_key_id = OFTHEPROFILE\naws_secret_access_key = hidden\n")
		t.Setenv("AWS_CONFIG_FILE", files+"/config")
		t.Setenv("AWS_SHARED_CREDENTIALS_FILE", files+"/credentials")
		t.Setenv("AWS_PROFILE", "cold")
		t.Setenv("AWS_ENDPOINT_URL_S3", "")
		count(address)
		a.each(t, "a profile", func(r *http.Request) bool {
			return signedBy("OFTHEPROFILE")(r) && strings.Contains(r.Header.Get("Authorization"), "/eu-north-1/")
		})
		t.Setenv("AWS_PROFILE", "missing")
		t.Setenv("AWS_ENDPOINT_URL_S3", endpoint)
		if got := said("nowhere", "count", address); !strings.HasSuffix(got, "status: 1") ||
			!strings.Contains(got, "profile missing") {
			t.Error(got)
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.all) > 0 {
			t.Error("without the credentials of a profile that was named, requests are made")
		}
	})
	t.Run("container", func(t *testing.T) {
		gives := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte(`{"AccessKeyId":"OFTHECONTAINER","SecretAccessKey":"hidden","Token":"passing",` +
				`"Expiration":"2099-01-01T00:00:00Z"}`))
		}))
		defer gives.Close()
		t.Setenv("AWS_EC2_METADATA_DISABLED", "")
		t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", gives.URL+"/role")
		count(address)
		a.each(t, "a container", func(r *http.Request) bool {
			return signedBy("OFTHECONTAINER")(r) && r.Header.Get("X-Amz-Security-Token") == "passing"
		})
	})
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAddressingStyles: the bucket's name is in the path, or in the host. A proxy gets what is asked of a host that
// does not exist.
func TestAddressingStyles(t *testing.T) {
	dir, name := bucketOf(t, "../../corpus/trevni/v1.12.2/avro_primitives.trv")
	s3 := &remotetest.S3{Dir: filepath.Dir(dir)}
	for style, host := range map[string]string{"path": "store.test", "virtual": "bucket.store.test", "": "store.test"} {
		a := &asked{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if bucket, _, ok := strings.Cut(r.Host, ".store.test"); ok {
				r.URL.Path = "/" + bucket + r.URL.Path
			}
			s3.ServeHTTP(w, r)
		})}
		asS3(t, a)
		proxy := os.Getenv("AWS_ENDPOINT_URL_S3")
		cmd := exec.Command(os.Args[0], "count", "s3://bucket/"+name)
		cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1", "HTTP_PROXY="+proxy, "AWS_S3_ADDRESSING_STYLE="+style,
			"AWS_ENDPOINT_URL_S3=http://store.test")
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "60\n" {
			t.Errorf("%q: %v: %s", style, err, out)
		}
		a.each(t, style, func(r *http.Request) bool { return r.Host == host })
	}
}
