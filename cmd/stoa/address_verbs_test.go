package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/store/remote/remotetest"
	"stoa/store/web"
)

// toldBy runs a line of the command.
func toldBy(args ...string) (string, int) {
	var out, errs bytes.Buffer
	status := run(context.Background(), args, strings.NewReader(""), &out, &errs)
	return out.String() + errs.String(), status
}

// TestVerbsAtAddresses: every verb does at an address what it does on a disk, and what it cannot do there, it says.
func TestVerbsAtAddresses(t *testing.T) {
	disk := t.TempDir()
	remotetest.Fixture(t, "../..", disk, toldBy)
	s3, dir := emptyBucket(t)
	if err := os.CopyFS(dir, os.DirFS(disk)); err != nil {
		t.Fatal(err)
	}
	asS3(t, s3)
	n := remotetest.Verbs(t, toldBy, disk, "s3://bucket")
	n += remotetest.Changes(t, toldBy, disk, "s3://bucket")
	pages := httptest.NewServer(remotetest.Web(filepath.Dir(disk), web.Index))
	defer pages.Close()
	at := pages.URL + "/" + filepath.Base(disk)
	n += remotetest.Verbs(t, toldBy, disk, at)
	n += remotetest.Refusals(t, toldBy, at)
	t.Logf("%d lines of the command were compared", n)
}
