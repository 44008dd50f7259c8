//go:build interop

package kudu

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"stoa/format"
	"stoa/store"

	"stoa"
)

// freePorts returns n ports that are not in use.
func freePorts(t testing.TB, n int) (ports []string) {
	var held []net.Listener
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, l)
		ports = append(ports, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	for _, l := range held {
		l.Close()
	}
	return ports
}

// killOne kills one of several tablet servers.
func (s *server) killOne(name string) {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, name+".pid"))
	if err != nil {
		s.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid < 2 {
		s.t.Fatal(name, err)
	}
	syscall.Kill(pid, syscall.SIGKILL)
	os.Remove(filepath.Join(s.dir, name+".pid"))
}

// census compares stoa's census of the three servers' directories with what was done to them: each tablet has three
// replicas; only replicas of t3, which died early, may be behind, and some are; all tables are complete.
func census(t *testing.T, place string) {
	t.Helper()
	how, err := stoa.Listing("census", stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	replicas, behind := map[string]int{}, 0
	found, err := how.List(t.Context(), format.Target{Tree: store.Local{}, Name: place}, format.OpenOptions{},
		func(v []string) {
			complete, tablet, at, state := v[2], v[3], v[6], v[7]
			replicas[tablet]++
			early := strings.Contains(at, "/t3/")
			if complete != "true" || state != "whole" && !(early && state == "behind") {
				t.Errorf("census: %q", v)
			}
			if state == "behind" {
				behind++
			}
		})
	if err != nil || behind == 0 {
		t.Errorf("census: %d behind, %v, %v", behind, found, err)
	}
	for id, n := range replicas {
		if n != 3 {
			t.Errorf("census: %d replicas of %s", n, id)
		}
	}
	t.Logf("COUNT %s: tablets in the census %d, replicas behind %d", t.Name(), len(replicas), behind)
}

// TestDirThreeServers: tables with three replicas on three servers. Each server flushed at its own times, so no two
// have the same rowsets, and one died early and lacks later changes. From the directories of all of them stoa must
// read what the client read, also with damaged blocks of one of the other two.
func TestDirThreeServers(t *testing.T) {
	t.Parallel()
	s := newDirServer(t, "file")
	p := freePorts(t, 4)
	s.env = append(s.env, fmt.Sprintf("MORE=t2:%s:%s t3:%s:%s", p[0], p[1], p[2], p[3]))
	s.start("--raft_heartbeat_interval_ms=200", "--follower_unavailable_considered_failed_sec=3600",
		"--default_composite_key_index_block_size_bytes=512")
	first, firstWeb := s.tserver, s.tweb
	of := func(i int, f func()) { // f talks to the i-th server
		if i > 0 {
			s.tserver, s.tweb = "127.0.0.1:"+p[2*i-2], "127.0.0.1:"+p[2*i-1]
		}
		f()
		s.tserver, s.tweb = first, firstWeb
	}
	all := workloads()
	tables := []*workload{all[0], all[1], all[3], all[7]} // types, parts, own_hash, churn
	tally := map[string]int{}
	for _, x := range tables {
		x.alters = nil
		x.more = append(x.more, "replicas\t3")
	}
	for chapter := range chapters {
		for _, x := range tables {
			x.live(s, chapter, tally)
		}
		switch chapter {
		case 0:
			s.flushAll()
			of(2, s.flushAll)
		case 2:
			of(1, s.flushAll)
			time.Sleep(time.Second)
			s.killOne("t3")
		case 3:
			s.flushAll()
		case 4:
			s.compactRows()
			of(1, s.flushSomeDeltas)
		}
	}
	want := map[string][]string{}
	for _, x := range tables {
		rows, err := s.scan(x.name)
		if err != nil {
			t.Fatal(x.name, err)
		}
		want[x.name] = rows
	}
	time.Sleep(2 * time.Second) // until the followers learn what is committed
	s.stop()
	place := filepath.Join(s.dir, "copies", "three")
	for _, n := range []string{"tserver", "t2", "t3", "master"} {
		copyDir(t, filepath.Join(s.dir, n), filepath.Join(place, n))
	}
	census(t, place)
	rows := 0
	for _, x := range tables {
		rows += check(t, place+"#"+x.name, x.name+", three servers", nil, want[x.name])
		for _, n := range []string{"tserver", "t2"} {
			rows += check(t, filepath.Join(place, n)+"#"+x.name, x.name+", "+n+" alone", nil, want[x.name])
		}
		if r, err := read(filepath.Join(place, "t3")+"#"+x.name, nil, stoa.ScanSpec{}); err != nil {
			t.Errorf("%s, t3 alone: %v", x.name, err)
		} else if difference(r.rows, want[x.name]) == "" {
			t.Errorf("%s: the server that died early has all rows: this test proves nothing", x.name)
		}
	}
	rows += rescue(t, s, tables, want)
	flipped := 0
	for _, list := range s.blocks() {
		for i, b := range list {
			if i%2 == 0 {
				s.flip(t, b, filepath.Join(place, "tserver"))
				flipped++
			}
		}
	}
	for _, x := range tables {
		rows += check(t, place+"#"+x.name, x.name+", one of three servers damaged", nil, want[x.name])
	}
	rows += inKind(t, s, tables, want)
	t.Logf("COUNT %s: rows compared %d, blocks damaged %d", t.Name(), rows, flipped)
	if d := os.Getenv("STOA_INTEROP_KEEP"); d != "" {
		os.RemoveAll(filepath.Join(d, "three"))
		copyDir(t, place, filepath.Join(d, "three"))
	}
}
