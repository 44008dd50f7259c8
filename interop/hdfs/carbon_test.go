//go:build interop

package hdfs

import (
	"strings"
	"testing"
	"time"

	"stoa/interop/places"
)

// TestCarbon: CarbonData under Spark reads what stoa made and changed in a cluster, changes it, and reads again what
// stoa then changed.
func TestCarbon(t *testing.T) {
	c := start(t, "simple")
	j := places.Judge{T: t, Stoa: c.run, Place: "hdfs:///store", Store: c.address() + "/store", Conf: c.dir + "/conf"}
	j.Run()
}

// TestLocks: stoa does not change a table whose lock Hadoop's own client holds.
func TestLocks(t *testing.T) {
	c := start(t, "simple")
	schema := c.file("columns.txt", []byte("id int\nname string\n"))
	src := c.file("one.jsonl", []byte("{\"id\":70000,\"name\":\"x\"}\n"))
	for _, args := range [][]string{{"create", "hdfs:///locked", "--schema", schema}, {"load", "hdfs:///locked", src}} {
		if said, status := c.run(args...); status != 0 {
			t.Fatalf("%v: status %d: %s", args, status, said)
		}
	}
	c.tell("append", "/locked/LockFiles/tablestatus.lock")
	begin := time.Now()
	said, status := c.run("load", "hdfs:///locked", src)
	if status != 2 || !strings.Contains(said, "tablestatus.lock") || time.Since(begin) < 20*time.Second {
		t.Errorf("a lock that Hadoop's client holds: status %d: %s", status, said)
	}
	c.tell("close")
	if said, status := c.run("load", "hdfs:///locked", src); status != 0 {
		t.Errorf("after it is released: status %d: %s", status, said)
	}
	if said, status := c.run("count", "hdfs:///locked"); status != 0 || said != "2\n" {
		t.Errorf("status %d: %s", status, said)
	}
	t.Logf("COUNT loads that waited for a lock of Hadoop's client: 1")
	t.Logf("%s: noticed: a table that another program has locked", "lock")
}
