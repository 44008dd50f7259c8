package main

import (
	"bytes"
	"context"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stoa/cmd/stoa/internal/cli"
	"stoa/store/remote/remotetest"
	"stoa/store/web"
)

// marker is in every secret of these tests.
const marker = "hidden"

// formsOf returns lines of a verb that name an address wherever a path can be.
func formsOf(verb *cobra.Command, address, file string) (lines [][]string) {
	name := verb.Name()
	lines = [][]string{{name, address}, {name, "-v", address}, {name, file, address}, {name, address, file},
		{name, address + "#t"}, {name, address, "--where", "a = 1"}}
	verb.Flags().VisitAll(func(f *pflag.Flag) {
		switch f.Name {
		case "format":
			lines = append(lines, []string{name, address, "--format", "json"})
		case "all", "each", "deep", "dry-run":
			lines = append(lines, []string{name, address, "--" + f.Name, "-v"})
		case "output":
			lines = append(lines, []string{name, file, "-o", address}, []string{name, address, "-o", "out.parquet"},
				[]string{name, address, "-o", "out/"}, []string{name, "--all", address, "-o", "all"})
		case "manifest", "attach", "table", "schema", "seal", "wal-dir", "meta-dir", "data-dirs", "split", "report":
			lines = append(lines, []string{name, file, "--" + f.Name, address},
				[]string{name, address, "--" + f.Name, "x=" + address})
		}
	})
	return lines
}

// secretIn returns an output, or the name of a file below the working directory, that has the marker in it.
func secretIn(t *testing.T, said string) string {
	t.Helper()
	if strings.Contains(said, marker) {
		return said
	}
	found := ""
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		if strings.Contains(name, marker) || bytes.Contains(b, []byte(marker)) {
			found = "the file " + name
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestNoVerbTellsSecrets: no verb repeats what may be secret in an address of whatever scheme: in no message, document
// or file that it writes, whether the address can be read or not.
func TestNoVerbTellsSecrets(t *testing.T) {
	dir, name := bucketOf(t, "../../corpus/trevni/v1.12.2/avro_primitives.trv")
	file, err := filepath.Abs("../../corpus/redfile/red1/flat_pages.red")
	if err != nil {
		t.Fatal(err)
	}
	pages := httptest.NewServer(remotetest.Web(filepath.Dir(dir), web.Index))
	defer pages.Close()
	at := "://me:hidden@" + strings.TrimPrefix(pages.URL, "http://") + "/bucket/"
	addresses := []string{"http" + at + name + "?signature=hidden", "http" + at, "http" + at + "missing?s=hidden",
		"s3://AKID:hid/hidden@bucket/" + name, "s3://AKID:12/hidden@bucket", "hdfs://me:hidden@127.0.0.1:1/x",
		"ftp" + at + name, "sftp://me:hidden/hidden@host/x", "gs://me:hidden@bucket/x", "az://me:hidden@bucket/x",
		"abfss://me:hidden@host/x", "s3a://AKID:hidden@bucket/x", "S3://AKID:hidden@bucket/x",
		"HTTPS://me:hidden@host/x?s=hidden", "http://me:hidden@127.0.0.1:1/x?s=hidden"}
	bucket := &remotetest.S3{Dir: filepath.Dir(dir)}
	asS3(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead { // what is read by all of them stays as it is
			http.Error(w, "you sent "+r.Header.Get("Authorization"), http.StatusForbidden)
			return
		}
		bucket.ServeHTTP(w, r)
	}))
	t.Setenv("AWS_SECRET_ACCESS_KEY", "the/hidden+key")
	t.Setenv("HADOOP_CONF_DIR", t.TempDir())
	cli.RemoteOptions.Tries = 1
	verbs := rootCmd(cli.NewApp(nil, nil, nil)).Commands()
	fine, lines, every := 0, 0, 3
	if testing.Short() {
		every = 17
	}
	for i, verb := range verbs {
		for k, address := range append(addresses, "s3://bucket/"+name, "s3://bucket/in") {
			if (i+k)%every != 0 {
				continue
			}
			t.Chdir(t.TempDir())
			for _, line := range formsOf(verb, address, file) {
				said, status := toldWithin(10*time.Second, line)
				if where := secretIn(t, said); where != "" {
					t.Fatalf("%v: status %d: a secret is in %s", line, status, where)
				}
				if lines++; status == 0 {
					fine++
				}
			}
		}
	}
	t.Logf("%d lines of %d verbs, %d of them with status 0", lines, len(verbs), fine)
	if fine < lines/100 {
		t.Error("too few lines read anything")
	}
}

// toldWithin runs a line of the command, which is ended after a time.
func toldWithin(d time.Duration, line []string) (string, int) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var out, errs bytes.Buffer
	status := run(ctx, line, strings.NewReader(""), &out, &errs)
	return out.String() + errs.String(), status
}
