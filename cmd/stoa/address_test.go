package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"stoa/cmd/stoa/internal/cli"
	"stoa/store/remote"
	"stoa/store/remote/remotetest"
	"stoa/store/web"
)

const (
	testKey    = "AKIDOFTHETEST"
	testSecret = "this+is/the+secret+of+the+test"
)

// The library waits after a failed request although it does not repeat it.
func init() { minio.DefaultRetryUnit = time.Microsecond }

// seedAndRounds returns STOA_SEED and STOA_ROUNDS, or what is preset; short is the number of rounds with -short.
func seedAndRounds(t *testing.T, rounds, short int) (seed uint64, n int) {
	t.Helper()
	if testing.Short() {
		rounds = short
	}
	of := func(name string, preset uint64) uint64 {
		text := os.Getenv(name)
		if text == "" {
			return preset
		}
		v, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return v
	}
	return of("STOA_SEED", 1), int(of("STOA_ROUNDS", uint64(rounds)))
}

// asS3 lets a server answer s3:// addresses.
func asS3(t *testing.T, h http.Handler) {
	t.Helper()
	cli.RemoteOptions = remote.Options{Wait: 20 * time.Microsecond}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	for k, v := range map[string]string{"AWS_ACCESS_KEY_ID": testKey, "AWS_SECRET_ACCESS_KEY": testSecret,
		"AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "",
		"AWS_ENDPOINT_URL_S3": s.URL, "AWS_S3_ADDRESSING_STYLE": "", "AWS_NO_SIGN_REQUEST": "",
		"AWS_CONFIG_FILE":             filepath.Join(t.TempDir(), "none"),
		"AWS_SHARED_CREDENTIALS_FILE": filepath.Join(t.TempDir(), "none"), "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(k, v)
	}
}

// bucketOf copies a source into a new directory, and returns that directory and the source's name in it.
func bucketOf(t *testing.T, uri string) (dir, name string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "bucket")
	place, table, _ := strings.Cut(uri, "#")
	place = strings.TrimSuffix(place, "/")
	st, err := os.Stat(place)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "in", filepath.Base(place))
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		t.Fatal(err)
	}
	if st.IsDir() {
		err = os.CopyFS(to, os.DirFS(place))
	} else {
		var b []byte
		if b, err = os.ReadFile(place); err == nil {
			err = os.WriteFile(to, b, 0o666)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if name = "in/" + filepath.Base(place); table != "" {
		name += "#" + table
	}
	return dir, name
}

// said returns all output of a command, and its status, with the place replaced by BUCKET.
func said(place string, args ...string) string {
	var out, errs bytes.Buffer
	status := run(context.Background(), args, strings.NewReader(""), &out, &errs)
	all := fmt.Sprintf("%s\nstderr:\n%s\nstatus: %d", out.String(), errs.String(), status)
	return strings.ReplaceAll(all, place, "BUCKET")
}

// verbsOfAddresses are the verbs that read.
var verbsOfAddresses = [][]string{{"cat", "-f", "jsonl"}, {"ls", "-f", "json"}, {"count"}, {"verify", "-f", "json"},
	{"verify", "--deep", "-f", "jsonl"}, {"describe"}, {"stats", "-f", "json"}, {"schema"},
	{"convert", "-q", "--to", "csv", "-o", "-"}}

// TestAddresses: an address gives the same output as the same files on a disk, in every format, with every verb, over
// S3 and over the web, with faults on the way, and from a server without range requests.
func TestAddresses(t *testing.T) {
	read := 0
	for i, src := range faultSources(t) {
		if testing.Short() && i%3 != 0 {
			continue
		}
		t.Run(src.name, func(t *testing.T) {
			dir, name := bucketOf(t, src.uri)
			var want []string
			for _, v := range verbsOfAddresses {
				want = append(want, said(dir, append(v, filepath.Join(dir, name))...))
			}
			if strings.HasSuffix(want[0], "status: 0") {
				read++
			}
			s3 := &remotetest.S3{Dir: filepath.Dir(dir), Key: testKey, Page: 3}
			faults := remotetest.NewFaults(0.05, uint64(i))
			files := remotetest.Web(filepath.Dir(dir), web.Index)
			for _, way := range []struct {
				name  string
				h     http.Handler
				s3    bool
				verbs int
			}{
				{"s3", s3, true, len(want)},
				{"s3 with faults", faults.On(s3), true, 2},
				{"web", files, false, len(want)},
				{"web without ranges", remotetest.NoRanges(files), false, 2},
			} {
				place := "s3://bucket"
				if way.s3 {
					asS3(t, way.h)
				} else {
					s := httptest.NewServer(way.h)
					t.Cleanup(s.Close)
					place = s.URL + "/bucket"
				}
				for k, v := range verbsOfAddresses[:way.verbs] {
					if got := said(place, append(v, place+"/"+name)...); got != want[k] {
						t.Errorf("%s, %v:\n%s", way.name, v, firstDifference(got, want[k]))
					}
				}
			}
		})
	}
	if read < 6 {
		t.Errorf("only %d sources have rows", read)
	}
}

// firstDifference returns the first line in which two texts differ.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return "got  " + g[i] + "\nwant " + strings.Join(w[min(i, len(w)):min(i+1, len(w))], "")
		}
	}
	if len(g) == len(w) {
		return "they are equal"
	}
	return "got  less than wanted: " + w[len(g)]
}

// managed makes a table of many objects in a bucket, and returns the output of cat.
func managed(t *testing.T) (dir, name, want string) {
	t.Helper()
	dir, name = bucketOf(t, "../../corpus/carbon/2.3.0/managed/managed_del")
	return dir, name, said(dir, "cat", "-f", "jsonl", filepath.Join(dir, name))
}

// TestFaultsOfStores: whatever a store does, an address returns all rows and status 0, or an error that names the
// object, and status 1.
func TestFaultsOfStores(t *testing.T) {
	dir, name, want := managed(t)
	for _, share := range []float64{0.2, 0.6, 0.97} {
		for seed := range uint64(4) {
			s3 := &remotetest.S3{Dir: filepath.Dir(dir)}
			faults := remotetest.NewFaults(share, seed)
			asS3(t, faults.On(s3))
			began := time.Now()
			got := said("s3://bucket", "cat", "-f", "jsonl", "s3://bucket/"+name)
			failed := strings.HasSuffix(got, "status: 1") && strings.Contains(got, "BUCKET")
			if got != want && !failed {
				t.Errorf("%v of the requests failed: %s", share, firstDifference(got, want))
			}
			if share < 0.5 && got != want {
				t.Errorf("%v of the requests failed, and that was too much: %s", share, got)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %s to give up", took)
			}
		}
	}
}

// TestStoreThatIsGone: no verb waits long for a server that does not answer.
func TestStoreThatIsGone(t *testing.T) {
	dir, name, _ := managed(t)
	s3 := &remotetest.S3{Dir: filepath.Dir(dir)}
	faults := remotetest.NewFaults(0, 1)
	asS3(t, faults.On(s3))
	faults.Dead.Store(true)
	began := time.Now()
	got := said("s3://bucket", "count", "s3://bucket/"+name)
	if !strings.HasSuffix(got, "status: 1") || !strings.Contains(got, "BUCKET/"+name) ||
		!strings.Contains(got, "attempts") {
		t.Error(got)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestSecretsStaySecret: no output of the command contains a key, password or signature, whatever fails, and none is
// sent to another host.
func TestSecretsStaySecret(t *testing.T) {
	dir, name := bucketOf(t, "../../corpus/trevni/v1.12.2/avro_primitives.trv")
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for k, v := range r.Header {
			if text := k + ": " + strings.Join(v, " "); k == "Authorization" || strings.Contains(text, "hidden") ||
				strings.Contains(text, testKey) {
				t.Errorf("another host was sent %s", text)
			}
		}
		remotetest.Web(filepath.Dir(dir), web.Index).ServeHTTP(w, r)
	}))
	defer other.Close()
	s3 := &remotetest.S3{Dir: filepath.Dir(dir)}
	files := remotetest.Web(filepath.Dir(dir), web.Index)
	for what, h := range map[string]http.Handler{
		"files": files, "denied": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "you sent "+r.Header.Get("Authorization")+r.URL.String(), http.StatusForbidden)
		}),
		"redirects": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
		}),
		"a bad answer": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", ":// "+r.URL.String())
			w.WriteHeader(http.StatusFound)
		}),
		"expired":     func() http.Handler { s := &remotetest.S3{Dir: s3.Dir}; s.Expired.Store(true); return s }(),
		"another key": &remotetest.S3{Dir: s3.Dir, Key: "ANOTHERKEY"},
	} {
		srv := httptest.NewServer(h)
		asS3(t, h)
		cli.RemoteOptions.Tries = 2
		host := strings.TrimPrefix(srv.URL, "http://")
		for _, address := range []string{"s3://bucket/" + name,
			"http://user:hidden@" + host + "/bucket/" + name + "?signature=hidden"} {
			for _, verb := range [][]string{{"count", "-v"}, {"plan"}, {"verify", "-f", "json"}, {"ls", "-v"},
				{"cat", "-o", address}, {"convert", "--to", "csv", "-o", "-"}, {"explain", "-f", "json"}} {
				got := said("nowhere", append(verb, address)...)
				for _, secret := range []string{"hidden", testSecret, testKey} {
					if strings.Contains(got, secret) {
						t.Errorf("%s: %v %s says a secret: %s", what, verb, path.Base(address), got)
					}
				}
				if what == "expired" && strings.HasPrefix(address, "s3:") && verb[0] == "count" &&
					!strings.Contains(got, "expired") {
					t.Errorf("why is not said: %s", got)
				}
			}
		}
		srv.Close()
	}
}

// TestSecretsOfWrongAddresses: an address that is wrong, or of a kind that has no secrets in it, is not repeated with
// what may be one.
func TestSecretsOfWrongAddresses(t *testing.T) {
	asS3(t, http.NotFoundHandler())
	t.Setenv("HADOOP_CONF_DIR", t.TempDir())
	file := "../../corpus/redfile/red1/flat_pages.red"
	for _, address := range []string{"s3://AKID:hidden@bucket/x", "s3://AKID:hidden@/x",
		"hdfs://me:hidden@127.0.0.1:1/x", "hdfs://me:hidden@/x", "https://me:hidden@/x?sig=hidden",
		"http://me:hid%den@127.0.0.1:1/x%2", "gs://me:hidden@bucket/x", "s3:/AKID:hidden@bucket/x"} {
		for _, verb := range [][]string{{"ls"}, {"cat"}, {"plan"}, {"verify"}, {"diff", file},
			{"seal", "-o", os.DevNull}, {"convert", file, "-o"}, {"convert", "--all", file, "-o"},
			{"delete", "--where", "a = 1"}, {"clean"}, {"convert", "-o", os.DevNull, "--to", "csv"},
			{"describe", "-v"}, {"rescue", "-o", address}, {"cat", file, "-o"}, {"load", file},
			{"create", "-f", "json"}, {"explain", "-f", "json"}} {
			cli.RemoteOptions.Tries = 1
			if got := said("nowhere", append(verb, address)...); strings.Contains(got, "hidden") ||
				strings.Contains(got, "hid%den") {
				t.Errorf("%v %s: %s", verb, address, got)
			}
		}
	}
}

// TestObjectThatChanges: an object that is replaced while it is read is reported like a file that changes, also by a
// store that has only times of objects.
func TestObjectThatChanges(t *testing.T) {
	for _, untagged := range []bool{false, true} {
		t.Run(fmt.Sprint("without ETags: ", untagged), func(t *testing.T) { objectThatChanges(t, untagged) })
	}
}

func objectThatChanges(t *testing.T, untagged bool) {
	dir, name := bucketOf(t, "../../corpus/trevni/v1.12.2/avro_primitives.trv")
	s3 := &remotetest.S3{Dir: filepath.Dir(dir), NoETags: untagged}
	file := filepath.Join(dir, name)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu   sync.Mutex
		gets int
	)
	asS3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if gets++; r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".trv") {
			b[len(b)-1] ^= 1
			if err := os.WriteFile(file, b, 0o666); err != nil {
				t.Error(err)
			}
			now := time.Now().Add(time.Duration(gets) * time.Second)
			os.Chtimes(file, now, now)
		}
		s3.ServeHTTP(w, r)
	}))
	got := said("s3://bucket", "cat", "s3://bucket/"+name)
	if !strings.Contains(got, "changed") || !strings.HasSuffix(got, "status: 1") {
		t.Error(got)
	}
}

// TestNotWrittenToAddresses: output that cannot be written to an address is refused, and leaves nothing behind, not
// even a local file.
func TestNotWrittenToAddresses(t *testing.T) {
	dir, name := bucketOf(t, "../../corpus/trevni/v1.12.2/avro_primitives.trv")
	s3 := &remotetest.S3{Dir: filepath.Dir(dir)}
	asS3(t, s3)
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"convert", filepath.Join(dir, name), "-o", "http://127.0.0.1:1/out.parquet"},
		{"convert", "--all", dir, "-o", "https://127.0.0.1:1/out/"},
		{"convert", "--all", dir, "--to", "kudu-backup", "-o", "s3://bucket/out/"},
		{"cat", filepath.Join(dir, name), "-o", "http://127.0.0.1:1/out.csv"},
		{"convert", "s3://bucket/" + name, "-o", "s3://bucket/" + name + "/x.parquet"},
		{"convert", "s3://bucket/" + name, "--to", "csv", "-o", "s3://bucket/" + name},
		{"convert", "s3://bucket/" + name, "--to", "cfile", "-o", "s3://bucket/in/"},
		{"seal", "s3://bucket/" + name, "-o", "http://127.0.0.1:1/s.seal"},
		{"delete", "s3://bucket/" + name, "--where", "a = 1"},
		{"rescue", dir, "-o", "s3://bucket/out"},
		{"drop", "s3://bucket/" + name}} {
		if got := said("nowhere", args...); strings.HasSuffix(got, "status: 0") {
			t.Errorf("%v: %s", args, got)
		}
		if left := everything(t); len(left) > 0 {
			t.Fatalf("%v made %q", args, left)
		}
		if keys := keysOf(t, dir); len(keys) != 1 {
			t.Fatalf("%v wrote %q", args, keys)
		}
	}
}

// TestMostRequests: a limit of requests ends a verb with a message that names the flag; a limit one above the need does
// not.
func TestMostRequests(t *testing.T) {
	dir, name, want := managed(t)
	s3 := &remotetest.S3{Dir: filepath.Dir(dir)}
	asS3(t, s3)
	cat := []string{"cat", "-f", "jsonl", "s3://bucket/" + name, "--max-requests"}
	if got := said("s3://bucket", append(cat, "3")...); !strings.HasSuffix(got, "status: 1") ||
		!strings.Contains(got, "more than 3 requests (--max-requests)") {
		t.Error(got)
	}
	if n := s3.Requests.Load(); n > 3 {
		t.Errorf("%d requests were made", n)
	}
	if got := said("s3://bucket", append(cat, "100")...); got != want {
		t.Error(got)
	}
	s3.Requests.Store(0)
	var doc struct {
		Requests struct{ List, Head, Get, Bytes int64 }
	}
	all := said("s3://bucket", "explain", "--analyze", "-f", "json", "s3://bucket/"+name)
	got, _, _ := strings.Cut(all, "\nstderr:")
	if err := json.Unmarshal([]byte(got), &doc); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	// What was requested ahead may still be in progress when explain counts, or be given up before the server has it.
	q, n := doc.Requests, s3.Requests.Load()
	if sum := q.List + q.Head + q.Get; sum > n+2 || sum < n/2 || q.Get == 0 || q.Bytes == 0 {
		t.Errorf("explain counts %+v, the server %d", q, n)
	}
}
