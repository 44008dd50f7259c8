//go:build interop

package s3

import (
	"fmt"
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
	endpoint := ""
	for _, v := range g.env {
		if e, ok := strings.CutPrefix(v, "AWS_ENDPOINT_URL_S3="); ok {
			endpoint = e
		}
	}
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
