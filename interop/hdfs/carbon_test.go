//go:build interop

package hdfs

import (
	"strings"
	"testing"
	"time"

	"stoa/interop/places"
)

// TestCarbon: CarbonData under Spark reads what stoa made and changed in a cluster, changes it, and reads again what
// stoa then changed; neither changes a table whose lock the other one holds.
func TestCarbon(t *testing.T) {
	c := start(t, "simple")
	j := places.Judge{T: t, Stoa: c.run, Place: "hdfs:///store", Store: c.address() + "/store", Conf: c.dir + "/conf"}
	j.Run()

	src := c.file("one.jsonl", []byte("{\"id\":70000,\"name\":\"x\"}\n"))
	c.tell("append", "/store/plain/LockFiles/tablestatus.lock")
	begin := time.Now()
	said, status := c.run("load", "hdfs:///store/plain", src)
	if status != 1 || !strings.Contains(said, "tablestatus.lock") || time.Since(begin) < 20*time.Second {
		t.Errorf("a lock that Hadoop's client holds: status %d: %s", status, said)
	}
	c.tell("close")
	if said, status := c.run("load", "hdfs:///store/plain", src); status != 0 {
		t.Errorf("after it is released: status %d: %s", status, said)
	}
	t.Logf("%s: noticed: a table that another program has locked", "lock")
}
