package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"stoa/cmd/stoa/verbs"
)

// TestMain is the program itself where it is called by its name: the tests run it as people do, without building it
// again; called stoa, it is the light command, which looks for stoa-sql on the PATH.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "stoa-sql":
		main()
		return
	case "stoa":
		light()
		return
	}
	os.Exit(m.Run())
}

func light() {
	ctx, stop := signals()
	defer stop()
	a := verbs.NewApp(os.Stdin, os.Stdout, os.Stderr)
	status, _ := verbs.RunApp(ctx, a, os.Args[1:])
	os.Exit(status)
}

// programs is a directory with links to both.
func programs(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"stoa", "stoa-sql"} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// command is a call of one of the programs, with a cache of its own.
func command(dir, name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(dir, name), args...)
	c.Env = append(os.Environ(), "PATH="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "HOME="+dir)
	return c
}

// ended is how a command ended.
func ended(t *testing.T, c *exec.Cmd) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// endless is a query that takes hours: over a table of stoa's, or over one of DuckDB's alone.
var endless = []string{
	"SELECT sum(hash(a.i, b.i, c.i)) FROM 'big.trv' a, 'big.trv' b, 'big.trv' c",
	"SELECT sum(hash(a.range, b.range)) FROM range(10000000) a, range(10000000) b",
	"CREATE TABLE 'out.trv' AS SELECT a.i FROM 'big.trv' a, 'big.trv' b, 'big.trv' c",
}

// TestInterrupt: Ctrl-C ends a query within a second, with the status of other verbs that are interrupted, and leaves
// no file behind; so it does where stoa has called stoa-sql, and SIGTERM does the same.
func TestInterrupt(t *testing.T) {
	dir := programs(t)
	c := command(dir, "stoa-sql", "COPY (SELECT i::BIGINT AS i FROM range(200000) r(i)) TO 'big.trv'")
	c.Dir = dir
	if status, _, errs := ended(t, c); status != 0 {
		t.Fatal(status, errs)
	}
	for i, query := range append(endless, "-o", "-f") {
		args := []string{query}
		switch query {
		case "-o":
			args = []string{"-o", "out.csv", strings.Replace(endless[0], "sum(hash(a.i, b.i, c.i))", "a.i", 1)}
		case "-f":
			args = []string{"-f", "csv", strings.Replace(endless[0], "sum(hash(a.i, b.i, c.i))", "a.i", 1)}
		}
		c := command(dir, "stoa-sql", args...)
		if i == 0 {
			c = command(dir, "stoa", append([]string{"sql"}, args...)...)
		}
		c.Dir, c.Stdout = dir, &bytes.Buffer{}
		if query == "-f" {
			c.Stdout = nil // rows without end
		}
		errs := &bytes.Buffer{}
		c.Stderr = errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(min(patience(), 8)) * time.Second) // before it has begun nothing catches the signal
		begin := time.Now()
		signal := os.Signal(os.Interrupt)
		if i == 1 {
			signal = syscall.SIGTERM
		}
		if err := c.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		err := c.Wait()
		took := time.Since(begin)
		t.Logf("%q: %v after %s: %s", args, err, took.Round(time.Millisecond), errs)
		status := c.ProcessState.ExitCode()
		if status != 130 || errs.String() != "stoa: interrupted\n" {
			t.Errorf("%q: status %d, %q; expected 130, interrupted", args, status, errs)
		}
		if took > time.Second*time.Duration(patience()) {
			t.Errorf("%q: it took %s", args, took)
		}
		left, _ := filepath.Glob(filepath.Join(dir, "*out*"))
		if len(left) > 0 {
			t.Errorf("%q: left behind: %q", args, left)
		}
	}
}

// patience is how many seconds a second may take on a machine that has other things to do.
func patience() int {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 1
	}
	load, _, _ := strings.Cut(string(b), ".")
	if len(load) > 1 || load > "3" {
		return 15
	}
	return 1
}

// TestMemory: a query that sorts more than --memory spills, stays near the limit, and is right; --threads is what
// DuckDB takes.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it sorts half a gigabyte")
	}
	dir := programs(t)
	c := command(dir, "stoa-sql",
		"COPY (SELECT i::BIGINT AS i, repeat(md5(i::VARCHAR), 4) AS s FROM range(3000000) r(i)) TO 'x.trv'")
	c.Dir = dir
	if status, _, errs := ended(t, c); status != 0 {
		t.Fatal(status, errs)
	}
	most := map[string]int64{}
	for _, memory := range []string{"", "200MB"} {
		args := []string{"--threads", "1", "SELECT count(*) AS n, max(length(s)) AS l, count(DISTINCT s[1:20]) AS d " +
			"FROM (SELECT s, row_number() OVER (ORDER BY s) AS r FROM 'x.trv') WHERE r > 10"}
		if memory != "" {
			args = append([]string{"--memory", memory}, args...)
		}
		c := command(dir, "stoa-sql", args...)
		c.Dir = dir
		status, out, errs := ended(t, c)
		if status != 0 || out != "{\"n\":2999990,\"l\":128,\"d\":2999990}\n" {
			t.Fatalf("%q: status %d, %s %s", args, status, out, errs)
		}
		most[memory] = c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
	}
	t.Logf("MB at most: %d without a limit, %d with one of 200", most[""], most["200MB"])
	if most["200MB"] > 450 || most["200MB"] > most[""]/2 {
		t.Errorf("%d MB with a limit of 200, %d without", most["200MB"], most[""])
	}
	// Several tables share what the limit leaves for scans.
	c = command(dir, "stoa-sql", "--threads", "2", "--memory", "200MB", "SELECT count(*) AS n, "+
		"max(length(a.s || b.s || c.s)) AS l FROM 'x.trv' a JOIN 'x.trv' b USING (i) JOIN 'x.trv' c USING (i) "+
		"JOIN 'x.trv' d USING (i) WHERE d.s > ''")
	c.Dir = dir
	if status, out, errs := ended(t, c); status != 0 || out != "{\"n\":3000000,\"l\":384}\n" {
		t.Fatalf("a join of four: status %d, %s %s", status, out, errs)
	}
	joined := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
	t.Logf("MB at most: %d in a join of four with a limit of 200", joined)
	if joined > 500 {
		t.Errorf("a join of four takes %d MB with a limit of 200", joined)
	}
	c = command(dir, "stoa-sql", "--threads", "1", "--memory", "400MB",
		"SELECT current_setting('threads') AS t, current_setting('memory_limit') AS m")
	if _, out, _ := ended(t, c); out != "{\"t\":1,\"m\":\"286.1 MiB\"}\n" { // three quarters
		t.Errorf("settings: %s", out)
	}
}

// TestScripts: statements from an argument, a file and standard input; an error ends them, and is the status.
func TestScripts(t *testing.T) {
	dir := programs(t)
	script := "CREATE TABLE x AS SELECT 1 AS a; -- a ; comment\nINSERT INTO x VALUES (2);\nSELECT max(a) AS s FROM x;\n"
	if err := os.WriteFile(filepath.Join(dir, "s.sql"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args        []string
		stdin       string
		status      int
		out, stderr string
	}{
		{args: []string{script}, out: "{\"s\":2}\n"},
		{args: []string{"--script", "s.sql"}, out: "{\"s\":2}\n"},
		{stdin: script, out: "{\"s\":2}\n"},
		{stdin: "SELECT 1 AS a; SELEKT; SELECT 2 AS a", status: 2, out: "{\"a\":1}\n", stderr: "Parser Error"},
		{args: []string{"--script", "s.sql", "SELECT 1"}, status: 2, stderr: "do not go together"},
		{args: []string{"--script", "absent.sql"}, status: 1, stderr: "absent.sql"},
		{args: []string{"-i"}, stdin: script + ".quit\n", out: "{\"s\":2}\n"},
		{args: []string{"-o", "x.csv", "SELECT 1 AS a; SELECT 2 AS a"}, status: 2, stderr: "several statements"},
	} {
		for _, name := range []string{"stoa-sql", "stoa"} {
			args := c.args
			if name == "stoa" {
				args = append([]string{"sql"}, args...)
			}
			cmd := command(dir, name, args...)
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(c.stdin)
			status, out, errs := ended(t, cmd)
			if status != c.status || out != c.out || !strings.Contains(errs, c.stderr) {
				t.Errorf("%s %q: status %d, %q, %q", name, args, status, out, errs)
			}
		}
	}
}

// TestWithoutDatabase: stoa says how stoa-sql is got where it is not.
func TestWithoutDatabase(t *testing.T) {
	dir := programs(t)
	if err := os.Remove(filepath.Join(dir, "stoa-sql")); err != nil {
		t.Fatal(err)
	}
	status, _, errs := ended(t, command(dir, "stoa", "sql", "SELECT 1"))
	if status != 1 || !strings.Contains(errs, "make sql") {
		t.Errorf("status %d: %s", status, errs)
	}
}
