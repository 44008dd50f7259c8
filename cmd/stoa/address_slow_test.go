package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/cli"
	"stoa/store/remote/remotetest"
	"stoa/store/web"
)

// dripping sends the bodies of answers a byte at a time.
func dripping(h http.Handler, every time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole := httptest.NewRecorder()
		h.ServeHTTP(whole, r)
		for k, v := range whole.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(whole.Code)
		for _, b := range whole.Body.Bytes() {
			if _, err := w.Write([]byte{b}); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-time.After(every):
			case <-r.Context().Done():
				return
			}
		}
	})
}

// TestServersThatDrip: a server that sends its answers byte by byte is given up, however regularly they come.
func TestServersThatDrip(t *testing.T) {
	dir, name := bucketOf(t, "../../corpus/trevni/v1.12.2/avro_primitives.trv")
	for _, isS3 := range []bool{true, false} {
		place := "s3://bucket"
		if isS3 {
			asS3(t, dripping(&remotetest.S3{Dir: filepath.Dir(dir)}, 10*time.Millisecond))
		} else {
			asS3(t, http.NotFoundHandler())
			s := httptest.NewServer(dripping(remotetest.Web(filepath.Dir(dir), web.Index), 10*time.Millisecond))
			defer s.Close()
			place = s.URL + "/bucket"
		}
		cli.RemoteOptions.Idle, cli.RemoteOptions.Tries = 100*time.Millisecond, 3
		for _, verb := range []string{"count", "verify", "describe"} {
			began := time.Now()
			got := said(place, verb, place+"/"+name)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s of %s took %s", verb, place, took)
			}
			if !strings.HasSuffix(got, "status: 1") || !strings.Contains(got, "timeout: less than 16 KiB of the") ||
				!strings.Contains(got, "BUCKET/"+name) {
				t.Error(got)
			}
		}
	}
}
