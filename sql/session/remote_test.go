package session

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/store/remote/remotetest"
	"stoa/store/web"
)

// TestRemote: tables of S3 and of the web are read, joined with each other and with local ones, attached, looked at and
// written.
func TestRemote(t *testing.T) {
	local := demo(t)
	root := filepath.Join(t.TempDir(), "stores")
	if err := os.CopyFS(filepath.Join(root, "bucket"), os.DirFS(local)); err != nil {
		t.Fatal(err)
	}
	s3 := httptest.NewServer(&remotetest.S3{Dir: root, Key: "key", Page: 7})
	t.Cleanup(s3.Close)
	files := httptest.NewServer(remotetest.Web(root, web.Index))
	t.Cleanup(files.Close)
	for k, v := range map[string]string{"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "a secret",
		"AWS_ENDPOINT_URL_S3": s3.URL, "AWS_EC2_METADATA_DISABLED": "true", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": filepath.Join(root, "none"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(root, "none")} {
		t.Setenv(k, v)
	}
	for _, place := range []string{"s3://bucket", files.URL + "/bucket"} {
		for _, c := range []struct {
			out  string
			args []string
		}{
			{`{"n":400}`, []string{"SELECT count(*) AS n FROM " + quote(place+"/key.cfile")}},
			{`{"n":true}`, []string{"SELECT count(*) = (SELECT count(*) FROM " + quote(local+"/kudu#d_major") +
				") AND count(*) > 0 AS n FROM " + quote(place+"/kudu#d_major")}},
			{`{"n":400}`, []string{"SELECT count(*) AS n FROM " + quote(place+"/key.cfile") + " JOIN (SELECT " +
				"DISTINCT value FROM " + quote(local+"/key.cfile") + ") USING (value)"}},
			{`{"n":0}`, []string{"SELECT count(*) AS n FROM (FROM k.d_major EXCEPT FROM " +
				quote(local+"/kudu#d_major") + ")", "--attach", "k=" + place + "/kudu"}},
			{`{"n":60}`, []string{"SELECT count(*) AS n FROM p", "--table", "p=" + place + "/primitives.trv"}},
			{`{"n":"cfile.block.checksum"}`, []string{"SELECT code AS n FROM stoa_verify(" +
				quote(place+"/damaged/key.cfile") + ")"}},
			{`{"n":272}`, []string{"SELECT count(*) AS n FROM stoa(" + quote(place+"/damaged/key.cfile") +
				", damaged := 'skip-rows')"}},
		} {
			status, out, errs := run(append([]string{"-q", "-f", "jsonl"}, c.args...)...)
			want := 0
			if strings.Contains(c.args[0], "skip-rows") {
				want = 3
			}
			if status != want || strings.TrimSpace(out) != c.out {
				t.Errorf("%q: status %d, %s %s; expected %s", c.args, status, out, errs, c.out)
			}
		}
		status, out, errs := run("FROM " + quote(place+"/damaged/key.cfile"))
		if status != 3 || !strings.Contains(errs, place+"/damaged/key.cfile") || !strings.Contains(errs, "[539+525]") {
			t.Errorf("status %d, %.100s, %s", status, out, errs)
		}
	}
	copied := quote("s3://bucket/new.trv")
	status, _, errs := run("COPY (FROM " + quote(local+"/key.cfile") + ") TO " + copied)
	if status != 0 {
		t.Fatalf("status %d, %s", status, errs)
	}
	status, out, errs := run("SELECT count(*) AS n FROM (FROM " + copied + " EXCEPT ALL FROM " +
		quote(local+"/key.cfile") + ")")
	if status != 0 || out != "{\"n\":0}\n" {
		t.Errorf("status %d, %s %s", status, out, errs)
	}
}
