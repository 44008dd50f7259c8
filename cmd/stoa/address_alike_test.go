package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"stoa/store/remote/remotetest"
	"stoa/store/web"
)

// TestAlikeAtAddresses: of a file and of a directory of each kind every verb says at an address what it says on a disk,
// and ends with the same status.
func TestAlikeAtAddresses(t *testing.T) {
	disk := t.TempDir()
	remotetest.Fixture(t, "../..", disk, toldBy)
	remotetest.AddKinds(t, disk, toldBy)
	s3, dir := emptyBucket(t)
	if err := os.CopyFS(dir, os.DirFS(disk)); err != nil {
		t.Fatal(err)
	}
	asS3(t, s3)
	n := remotetest.Alike(t, toldBy, disk, "s3://bucket")
	pages := httptest.NewServer(remotetest.Web(filepath.Dir(disk), web.Index))
	defer pages.Close()
	n += remotetest.Alike(t, toldBy, disk, pages.URL+"/"+filepath.Base(disk))
	t.Logf("%d lines of the command were compared", n)
}
