//go:build interop

package hdfs

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// cluster is a MiniDFSCluster in a process of its own, and the command.
type cluster struct {
	t    *testing.T
	dir  string
	in   io.Writer
	out  *bufio.Scanner
	env  []string
	stoa string
	mu   sync.Mutex
}

// start starts a cluster: simple, ha or kerberos.
func start(t *testing.T, kind string, flags ...string) *cluster {
	t.Helper()
	where, err := exec.Command("./get.sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	lib := strings.TrimSpace(string(where))
	c := &cluster{t: t, dir: t.TempDir(), stoa: filepath.Join(t.TempDir(), "stoa")}
	if out, err := exec.Command("go", "build", "-o", c.stoa, "stoa/cmd/stoa").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	args := append([]string{"-Xmx900m", "-Djava.net.preferIPv4Stack=true"}, flags...)
	args = append(args, "-cp", lib+"/classes:"+lib+"/lib/*", "Cluster", c.dir, kind)
	java := exec.Command("java", args...)
	stdin, err := java.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := java.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	java.Stderr = &log
	if err := java.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		timer := time.AfterFunc(20*time.Second, func() { java.Process.Kill() })
		java.Wait()
		timer.Stop()
		if t.Failed() {
			t.Logf("the cluster said: %.4000s", log.String())
		}
	})
	c.in, c.out = stdin, bufio.NewScanner(stdout)
	if !c.out.Scan() || !strings.HasPrefix(c.out.Text(), "ready ") {
		t.Fatalf("the cluster did not start: %q", c.out.Text())
	}
	c.env = append(os.Environ(), "HADOOP_CONF_DIR="+c.dir+"/conf", "HADOOP_HOME=", "HADOOP_USER_NAME=",
		"KRB5_CONFIG="+c.dir+"/krb5.conf", "KRB5_CLIENT_KTNAME=")
	return c
}

// tell has the cluster obey a line.
func (c *cluster) tell(words ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := io.WriteString(c.in, strings.Join(words, " ")+"\n"); err != nil {
		c.t.Fatal(err)
	}
	if !c.out.Scan() || c.out.Text() != "ok" {
		c.t.Fatalf("%v: the cluster answers %q", words, c.out.Text())
	}
}

func (c *cluster) command(env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(c.stoa, args...)
	cmd.Env = append(append([]string{}, c.env...), env...)
	return cmd
}

// run runs the command, and returns all it says and its status.
func (c *cluster) run(args ...string) (said string, status int) {
	c.t.Helper()
	return c.as(nil, args...)
}

func (c *cluster) as(env []string, args ...string) (said string, status int) {
	c.t.Helper()
	cmd := c.command(env, args...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		c.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}
