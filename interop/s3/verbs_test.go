//go:build interop

package s3

import (
	"os"
	"testing"

	"stoa/store/remote/remotetest"
)

// TestVerbs: every verb does in a bucket of versitygw what it does on a disk, and what it cannot do there, it says.
func TestVerbs(t *testing.T) {
	g := start(t)
	disk := t.TempDir()
	remotetest.Fixture(t, "../..", disk, g.run)
	remotetest.AddKinds(t, disk, g.run)
	if err := os.CopyFS(g.dir, os.DirFS(disk)); err != nil {
		t.Fatal(err)
	}
	n := remotetest.Verbs(t, g.run, disk, "s3://bucket")
	n += remotetest.Changes(t, g.run, disk, "s3://bucket")
	n += remotetest.Alike(t, g.run, disk, "s3://bucket")
	t.Logf("COUNT lines of the command that do in a bucket what they do on a disk: %d", n)
}
