package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stoa/store/remote/remotetest"
)

// roles is the metadata service of an instance (version 2) or of a container: it gives keys that expire. valid admits
// only requests with a key and a token that it gave and that have not expired.
type roles struct {
	t    *testing.T
	life time.Duration
	dies int // after so many keys, every request fails; 0: never

	mu     sync.Mutex
	until  map[string]time.Time // by key
	asked  int
	signed map[string]int // requests to the store by key
	wrong  int            // requests that were not signed with a valid key
}

func newRoles(t *testing.T, life time.Duration) *roles {
	return &roles{t: t, life: life, until: map[string]time.Time{}, signed: map[string]int{}}
}

const (
	metadataToken = "tokenofthemetadata"
	roleSecret    = "secretofarole"
	rolePath      = "/latest/meta-data/iam/security-credentials/"
)

func (m *roles) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token" &&
		r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds") != "":
		fmt.Fprint(w, metadataToken)
	case r.URL.Path == rolePath && r.Header.Get("X-Aws-Ec2-Metadata-Token") == metadataToken:
		fmt.Fprint(w, "reader")
	case r.URL.Path == rolePath+"reader" && r.Header.Get("X-Aws-Ec2-Metadata-Token") == metadataToken,
		r.URL.Path == "/container" && r.Header.Get("Authorization") == metadataToken:
		m.give(w)
	default:
		http.Error(w, "not like this: "+metadataToken, http.StatusUnauthorized)
	}
}

func (m *roles) give(w http.ResponseWriter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if m.dies > 0 && m.asked > m.dies {
		http.Error(w, roleSecret, http.StatusInternalServerError)
		return
	}
	key, until := fmt.Sprintf("ROLEKEY%d", m.asked), time.Now().Add(m.life)
	m.until[key] = until
	json.NewEncoder(w).Encode(map[string]any{"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": key,
		"SecretAccessKey": roleSecret, "Token": "sessionof" + key, "Expiration": until})
}

// valid is a store that admits only valid keys.
func (m *roles) valid(store http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		key, _, _ := strings.Cut(rest, "/")
		m.mu.Lock()
		ok := time.Now().Before(m.until[key]) && r.Header.Get("X-Amz-Security-Token") == "sessionof"+key
		if ok {
			m.signed[key]++
		} else {
			m.wrong++
		}
		m.mu.Unlock()
		if !ok {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		store.ServeHTTP(w, r)
	})
}

// TestRoles: the credentials of an instance and of a container are used, and renewed before they expire; no request is
// made without them, and no output has them.
func TestRoles(t *testing.T) {
	dir, name, want := managed(t)
	start := func(t *testing.T, m *roles, latency time.Duration) (metadata string) {
		faults := remotetest.NewFaults(0, 1)
		faults.Latency = latency
		asS3(t, m.valid(faults.On(&remotetest.S3{Dir: filepath.Dir(dir), Page: 3})))
		for _, k := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED"} {
			t.Setenv(k, "")
		}
		s := httptest.NewServer(m)
		t.Cleanup(s.Close)
		return s.URL
	}
	cat := func(t *testing.T, m *roles) string {
		t.Helper()
		got := said("s3://bucket", "cat", "-v", "-f", "jsonl", "s3://bucket/"+name)
		for _, secret := range []string{roleSecret, "sessionof", "ROLEKEY", metadataToken} {
			if strings.Contains(got, secret) {
				t.Errorf("the output has %q: %s", secret, got)
			}
		}
		if m.wrong > 0 {
			t.Errorf("%d requests without a valid key", m.wrong)
		}
		return got
	}
	rows := func(t *testing.T, m *roles, keys int) {
		t.Helper()
		got := cat(t, m)
		gotRows, _, _ := strings.Cut(got, "\nstderr:")
		wantRows, _, _ := strings.Cut(want, "\nstderr:")
		if gotRows != wantRows || !strings.HasSuffix(got, "status: 0") {
			t.Errorf("got %s\nwant %s", got, want)
		}
		if len(m.signed) < keys {
			t.Errorf("requests were signed with %d keys, want %d", len(m.signed), keys)
		}
	}
	t.Run("instance", func(t *testing.T) {
		m := newRoles(t, time.Hour)
		t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", start(t, m, 0)+"/")
		rows(t, m, 1)
		if m.asked != 1 {
			t.Errorf("credentials of an hour were asked for %d times", m.asked)
		}
	})
	t.Run("renewal", func(t *testing.T) {
		m := newRoles(t, 1500*time.Millisecond)
		t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", start(t, m, 150*time.Millisecond))
		rows(t, m, 2)
	})
	t.Run("no renewal", func(t *testing.T) {
		m := newRoles(t, 1500*time.Millisecond)
		m.dies = 1
		t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", start(t, m, 150*time.Millisecond))
		if got := cat(t, m); !strings.HasSuffix(got, "status: 1") || !strings.Contains(got, "BUCKET") ||
			!strings.Contains(got, "could not be renewed: HTTP status 500") {
			t.Error(got)
		}
	})
	t.Run("container", func(t *testing.T) {
		m := newRoles(t, time.Hour)
		t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", start(t, m, 0)+"/container")
		t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", metadataToken)
		rows(t, m, 1)
		t.Setenv("AWS_EC2_METADATA_DISABLED", "true") // it is about instances
		rows(t, m, 1)
		t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "other")
		if got := cat(t, m); !strings.HasSuffix(got, "status: 1") || !strings.Contains(got, "HTTP status 401") {
			t.Error(got)
		}
		t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
		file := filepath.Join(t.TempDir(), "token")
		write(t, file, metadataToken)
		t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file)
		rows(t, m, 1)
	})
	t.Run("elsewhere", func(t *testing.T) { // who is sent elsewhere takes the token of the metadata along
		other := &asked{Handler: http.NotFoundHandler()}
		o := httptest.NewServer(other)
		defer o.Close()
		m := newRoles(t, time.Hour)
		start(t, m, 0)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, o.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}))
		defer s.Close()
		t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", s.URL)
		if got := cat(t, m); !strings.HasSuffix(got, "status: 1") || !strings.Contains(got, "HTTP status 307") {
			t.Error(got)
		}
		if len(other.all) > 0 {
			t.Error("a redirect of the metadata service was followed")
		}
	})
	t.Run("none", func(t *testing.T) { // the store is public; nothing answers, and is asked once
		m := newRoles(t, time.Hour)
		start(t, m, 0)
		a := &asked{Handler: &remotetest.S3{Dir: filepath.Dir(dir)}}
		s := httptest.NewServer(a)
		defer s.Close()
		t.Setenv("AWS_ENDPOINT_URL_S3", s.URL)
		t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
		rows(t, m, 0)
		a.each(t, "anonymous", func(r *http.Request) bool { return r.Header.Get("Authorization") == "" })
	})
}
