//go:build interop

package hdfs

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"stoa/store/remote/remotetest"
)

// corpus are places that Hadoop's own client copies into the cluster.
var corpus = []string{"carbon/2.3.0/managed/managed_del", "kudu/1.18.1/d_minor", "redfile", "trevni"}

var verbs = [][]string{{"ls", "-f", "json"}, {"cat", "-f", "jsonl"}, {"count"}, {"verify", "--deep", "-f", "json"},
	{"schema"}, {"explain"}}

// compare has stoa read the corpus in the cluster and on the disk.
func (c *cluster) compare(env ...string) (compared int) {
	c.t.Helper()
	local, err := filepath.Abs("../../corpus")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, place := range corpus {
		c.tell("put", filepath.Join(local, place), "/corpus/"+place)
		for _, verb := range verbs {
			want, status := c.as(env, append(verb, filepath.Join(local, place))...)
			got, status2 := c.as(env, append(verb, "hdfs:///corpus/"+place)...)
			want = withoutRequests(strings.ReplaceAll(want, local, "CORPUS"))
			got = withoutRequests(strings.ReplaceAll(got, c.address()+"/corpus", "CORPUS"))
			if got != want || status != status2 {
				c.t.Errorf("%v %s: status %d, want %d:\n%.2000s\nwant\n%.2000s", verb, place, status2, status, got,
					want)
			}
			compared++
		}
	}
	return compared
}

// withoutRequests leaves out what explain says of requests, which a disk has none of.
func withoutRequests(s string) string {
	var out []string
	for line := range strings.Lines(s) {
		if !strings.Contains(line, "request") && line != "\n" { // nor the empty line before it
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// address is what hdfs:/// stands for.
func (c *cluster) address() string {
	c.t.Helper()
	b, err := os.ReadFile(c.dir + "/conf/core-site.xml")
	if err != nil {
		c.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "<name>fs.defaultFS</name><value>")
	address, _, _ := strings.Cut(rest, "<")
	return address
}

// rows returns an incompressible text of about n bytes.
func rows(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, "{\"a\":%d,\"b\":\"%x%x\"}\n", r.Int64(), r.Uint64(), r.Uint64())
	}
	return b.Bytes()
}

func (c *cluster) file(name string, b []byte) string {
	c.t.Helper()
	name = filepath.Join(c.t.TempDir(), name)
	if err := os.WriteFile(name, b, 0o666); err != nil {
		c.t.Fatal(err)
	}
	return name
}

// fetched returns the files below a path, by Hadoop's own client.
func (c *cluster) fetched(path string) map[string]string {
	c.t.Helper()
	to := filepath.Join(c.t.TempDir(), "got")
	c.tell("get", path, to)
	return files(c.t, to)
}

func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, ".crc") {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		b, err := os.ReadFile(name)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// write has stoa write files and directories, which Hadoop's own client then reads.
func (c *cluster) write(env ...string) (places int) {
	c.t.Helper()
	large := c.file("large.jsonl", rows(9<<20))
	local := c.t.TempDir()
	for _, w := range [][]string{{"large.jsonl"}, {"sub/large.parquet", "--opt", "compression=none"},
		{"set/", "--to", "cfile"}, {"small.csv", "-n", "10"}, {"large.arrow"}} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(local, w[0])), 0o777); err != nil {
			c.t.Fatal(err)
		}
		for _, place := range []string{local + "/", "hdfs:///out/"} {
			args := append([]string{"convert", "-q", large, "-o", place + w[0]}, w[1:]...)
			if said, status := c.as(env, args...); status != 0 {
				c.t.Fatalf("%v: status %d: %s", args, status, said)
			}
		}
		places++
	}
	want, got := files(c.t, local), c.fetched("/out")
	for name, b := range want {
		if got[name] != b {
			c.t.Errorf("%s: Hadoop reads %d bytes, want %d, or others", name, len(got[name]), len(b))
		}
	}
	if len(got) != len(want) {
		c.t.Errorf("Hadoop finds %d files, want %d", len(got), len(want))
	}
	said, status := c.as(env, "convert", "-q", large, "--to", "cfile", "-o", "hdfs:///out/set/")
	if status != 1 || !strings.Contains(said, "choose another name") {
		c.t.Errorf("a directory is written over: status %d: %s", status, said)
	}
	return places
}

func TestSimple(t *testing.T) {
	c := start(t, "simple")
	t.Logf("COUNT answers of verbs at hdfs:// that are those of a disk: %d", c.compare())
	t.Logf("COUNT places written to HDFS and read by Hadoop: %d", c.write())

	t.Run("denied", func(t *testing.T) {
		c.tell("chmod", "700", "/corpus/trevni")
		said, status := c.as([]string{"HADOOP_USER_NAME=stranger"}, "cat", "hdfs:///corpus/trevni")
		if status != 1 || !strings.Contains(said, "denied") {
			t.Errorf("status %d: %s", status, said)
		}
		if said, status = c.as([]string{"HADOOP_USER_NAME=stranger"}, "ls", "hdfs:///corpus"); !strings.Contains(said,
			"denied") || status == 0 {
			t.Errorf("ls of the directory above: status %d: %.300s", status, said)
		}
	})
	t.Run("safe mode", func(t *testing.T) {
		c.tell("safemode", "on")
		src := c.file("a.jsonl", []byte("{\"a\":1,\"b\":2}\n"))
		said, status := c.run("convert", src, "--to", "csv", "-o", "hdfs:///safe/a.csv")
		c.tell("safemode", "off")
		if status != 1 || !strings.Contains(said, "SafeMode") {
			t.Errorf("status %d: %s", status, said)
		}
		if said, status := c.run("ls", "hdfs:///safe/"); status != 1 {
			t.Errorf("something is left: status %d: %s", status, said)
		}
	})
	t.Run("two writers", func(t *testing.T) {
		src := c.file("a.jsonl", rows(1<<20))
		for round := range 5 {
			place := fmt.Sprintf("hdfs:///race/%d/", round)
			var work sync.WaitGroup
			won := make(chan bool, 4)
			for range 4 {
				work.Go(func() {
					_, status := c.run("convert", "-q", src, "--to", "cfile", "-o", place)
					won <- status == 0
				})
			}
			work.Wait()
			n := 0
			for range 4 {
				if <-won {
					n++
				}
			}
			if said, status := c.run("verify", place); n != 1 || status != 0 {
				t.Errorf("%d of 4 writers succeeded; verify: status %d: %s", n, status, said)
			}
		}
	})
	t.Run("killed", func(t *testing.T) { c.killed(t) })
	t.Run("changed", func(t *testing.T) { c.changed(t) })
	t.Run("corrupt block", func(t *testing.T) {
		c.tell("corrupt", "/out/sub/large.parquet")
		said, status := c.run("cat", "-f", "csv", "-o", os.DevNull, "hdfs:///out/sub/large.parquet")
		if status != 1 || !strings.Contains(said, "large.parquet") || !strings.Contains(said, "checksum") {
			t.Errorf("status %d: %s", status, said)
		}
		t.Logf("%s: noticed: a block whose replicas are all damaged", "corrupt")
	})
	t.Run("a datanode stops", func(t *testing.T) {
		c.tell("stop-datanode")
		for _, place := range corpus[:2] {
			if said, status := c.run("verify", "hdfs:///corpus/"+place); status != 0 {
				t.Errorf("%s: status %d: %s", place, status, said)
			}
		}
		if said, status := c.run("count", "hdfs:///out/large.arrow"); status != 0 {
			t.Errorf("status %d: %s", status, said)
		}
	})
}

// TestVerbs: every verb does in a cluster what it does on a disk, and what it cannot do there, it says.
func TestVerbs(t *testing.T) {
	c := start(t, "simple")
	disk := t.TempDir()
	remotetest.Fixture(t, "../..", disk, c.run)
	remotetest.AddKinds(t, disk, c.run)
	c.tell("put", disk, "/verbs")
	n := remotetest.Verbs(t, c.run, disk, c.address()+"/verbs")
	n += remotetest.Changes(t, c.run, disk, c.address()+"/verbs")
	n += remotetest.Alike(t, c.run, disk, c.address()+"/verbs")
	t.Logf("COUNT lines of the command that do in a cluster what they do on a disk: %d", n)
}

// killed kills a process that writes: nothing is visible, and clean removes the rest.
func (c *cluster) killed(t *testing.T) {
	src := c.file("big.jsonl", rows(60<<20))
	cmd := c.command(nil, "convert", src, "-q", "--no-check", "-o", "hdfs:///killed/big.jsonl")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	left := func() string {
		said, _ := c.run("clean", "hdfs:///killed", "--older-than", "-1m", "--dry-run")
		return said
	}
	for i := 0; !strings.Contains(left(), "_stoa-upload-"); i++ {
		if i == 200 {
			t.Fatal("no upload appears")
		}
		time.Sleep(20 * time.Millisecond)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if said, _ := c.run("ls", "hdfs:///killed"); strings.Contains(said, "big.jsonl") {
		t.Errorf("it is visible: %s", said)
	}
	said, status := c.run("clean", "hdfs:///killed", "--older-than", "-1m")
	if again := left(); status != 0 || !strings.Contains(said, "_stoa-upload-") || strings.Contains(again, "_stoa-") {
		t.Errorf("status %d: %s; then %s", status, said, again)
	}
	if got := c.fetched("/killed"); len(got) > 0 {
		t.Errorf("%d files are left", len(got))
	}
	t.Logf("COUNT uploads of killed processes that clean removed from HDFS: 1")
}

// changed replaces a file while it is read.
func (c *cluster) changed(t *testing.T) {
	text := rows(40 << 20)
	src := c.file("first.jsonl", text)
	other := c.file("second.jsonl", append([]byte("{\"a\":0,\"b\":\"other\"}\n"), text...))
	c.tell("put", src, "/change.jsonl")
	cmd := c.command(nil, "cat", "-f", "csv", "hdfs:///change.jsonl")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, out, 100_000); err != nil {
		t.Fatal(err)
	}
	c.tell("remove", "/change.jsonl")
	c.tell("put", other, "/change.jsonl")
	io.Copy(io.Discard, out)
	err = cmd.Wait()
	gone := strings.Contains(errs.String(), "change.jsonl: there is no such file") // it was read between the two
	if cmd.ProcessState.ExitCode() != 1 || !gone && !strings.Contains(errs.String(), "changed") {
		t.Errorf("%v: %s", err, errs.String())
	}
	t.Logf("%s: noticed: a file that is replaced while it is read", "changed")
}

// TestHA: a name service is found by the configuration, and a failover in the middle of a read changes nothing.
func TestHA(t *testing.T) {
	c := start(t, "ha")
	if c.address() != "hdfs://dead-cluster" {
		t.Fatal(c.address())
	}
	places := c.write()
	src := c.file("big.jsonl", rows(40<<20))
	c.tell("put", src, "/big.jsonl")
	want, err := exec.Command(c.stoa, "cat", "-f", "csv", src).Output()
	if err != nil {
		t.Fatal(err)
	}
	cmd := c.command(nil, "cat", "-f", "csv", "hdfs://dead-cluster/big.jsonl")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100_000)
	if _, err := io.ReadFull(out, got); err != nil {
		t.Fatal(err)
	}
	c.tell("failover")
	rest, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil || !bytes.Equal(append(got, rest...), want) {
		t.Errorf("%v: %s", err, errs.String())
	}
	if said, status := c.run("verify", "hdfs:///out"); status != 0 {
		t.Errorf("after the failover: status %d: %s", status, said)
	}
	t.Logf("COUNT failovers in the middle of a read: 1, after %d places were written", places)
}

// refuse has verbs read files over connections that the client library reads wrongly (docs/remote.md): they print what
// they print on a disk, or end with status 1 and name the file.
func (c *cluster) refuse(env ...string) (refused int) {
	c.t.Helper()
	local, err := filepath.Abs("../../corpus")
	if err != nil {
		c.t.Fatal(err)
	}
	const place = "trevni/dialects/wiki_dremel.trv"
	c.tell("put", filepath.Join(local, place), "/corpus/"+place)
	for _, verb := range verbs {
		want, status := c.as(env, append(verb, filepath.Join(local, place))...)
		got, status2 := c.as(env, append(verb, "hdfs:///corpus/"+place)...)
		want = withoutRequests(strings.ReplaceAll(want, local, "CORPUS"))
		got = withoutRequests(strings.ReplaceAll(got, c.address()+"/corpus", "CORPUS"))
		switch {
		case got == want && status == status2:
		case status2 == 1 && strings.Contains(got, "CORPUS/"+place) && strings.Contains(got, "the connection broke"):
			refused++
		default:
			c.t.Errorf("%v %s: status %d, want %d or 1:\n%.2000s", verb, place, status2, status, got)
		}
	}
	return refused
}

// TestKerberos: with a keytab all works without encryption. With it stoa writes files that Hadoop reads, and what it
// cannot read is an error. Without a keytab the reason is given.
func TestKerberos(t *testing.T) {
	for _, protection := range []string{"authentication", "privacy"} {
		t.Run(protection, func(t *testing.T) {
			c := start(t, "kerberos", "-Dprotection="+protection)
			with := "KRB5_CLIENT_KTNAME=" + c.dir + "/user.keytab"
			t.Logf("COUNT places written with Kerberos (%[2]s): %[1]d", c.write(with), protection)
			if protection == "privacy" {
				t.Logf("COUNT verbs that end with an error where connections are encrypted: %d", c.refuse(with))
			} else {
				t.Logf("COUNT answers of verbs with Kerberos (%[2]s): %[1]d", c.compare(with), protection)
			}
			said, status := c.as([]string{"KRB5CCNAME=/nonexistent"}, "ls", "hdfs:///out")
			if status == 0 || !strings.Contains(said, "kinit") {
				t.Errorf("without a ticket: status %d: %s", status, said)
			}
		})
	}
}
