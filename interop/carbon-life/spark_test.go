//go:build interop

package carbonlife

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// judgeOptions are options of the JVM, of Spark and of CarbonData. Spark's are those of CarbonData's own tests: Hive's
// metastore refuses columns that move to the position of columns of another type, so after one column is dropped no
// other could be. The statements are many and small: optimized compilation takes longer than running them.
var judgeOptions = []string{"-Xmx1500m", "-XX:TieredStopAtLevel=1", "-Dcarbon.clean.file.force.allowed=true",
	"-Dspark.hadoop.hive.metastore.disallow.incompatible.col.type.changes=false"}

// judge is CarbonData under Spark, in one process, and the command of stoa.
type judge struct {
	dir, work string // of the tables, and of everything else
	stoa      string
	in        io.WriteCloser
	out       *bufio.Scanner
	stderr    bytes.Buffer
	asked     int // statements that Spark answered
	ran       int // commands of stoa
	compared  int // cells
}

func newJudge(t *testing.T) *judge {
	j := &judge{dir: filepath.Join(t.TempDir(), "store"), work: t.TempDir()}
	j.stoa = filepath.Join(j.work, "stoa")
	if out, err := exec.Command("go", "build", "-o", j.stoa, "stoa/cmd/stoa").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.MkdirAll(j.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("../carbon-spark/sql.sh", j.dir, "-")
	cmd.Env = append(os.Environ(), "JUDGE_JAVA_OPTS="+strings.Join(judgeOptions, " "))
	cmd.Stderr = &j.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	j.in, j.out = in, bufio.NewScanner(out)
	j.out.Buffer(nil, 1<<24)
	t.Cleanup(func() {
		in.Close() // it ends when it has read all statements
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, &j.stderr)
		}
	})
	if _, err := j.sql("show tables"); err != nil { // CarbonData's catalogue begins with the first statement
		t.Fatal(err)
	}
	return j
}

// sql runs a statement in Spark and returns the rows.
func (j *judge) sql(statement string) (rows []string, err error) {
	j.stderr.Reset()
	if _, err := io.WriteString(j.in, statement+"\n"); err != nil {
		return nil, err
	}
	for j.out.Scan() {
		switch line := j.out.Text(); {
		case line == "== end":
			j.asked++
			return rows, err
		case strings.HasPrefix(line, "== "):
		case strings.HasPrefix(line, "!! "):
			err = fmt.Errorf("%.600s", line[3:])
		default:
			rows = append(rows, line)
		}
	}
	return nil, fmt.Errorf("the judge ended: %v\n%s", j.out.Err(), &j.stderr)
}

// run runs stoa.
func (j *judge) run(args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(j.stoa, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if j.ran++; err != nil {
		err = fmt.Errorf("%v: %s%s", err, &stdout, &stderr)
	}
	return stdout.String(), err
}

func (j *judge) path(name string) string { return filepath.Join(j.dir, name) }

// write writes a file for stoa.
func (j *judge) write(name string, b []byte) (string, error) {
	name = filepath.Join(j.work, name)
	return name, os.WriteFile(name, b, 0o666)
}

// same compares the rows that both read with the expected ones, and has stoa verify the table.
func (j *judge) same(t *table) error {
	want := t.lines()
	rows, err := j.sql("select * from " + t.name)
	if err != nil {
		return fmt.Errorf("Spark's select: %v", err)
	}
	got, err := parse(rows)
	if err != nil {
		return err
	}
	if d := differ(got, want); d != "" {
		return fmt.Errorf("Spark reads %s", d)
	}
	if err := j.counts(t, "", len(want)); err != nil {
		return err
	}
	out, err := j.run(t.flags("cat", j.path(t.dir), "-f", "jsonl", "--unordered")...)
	if err != nil {
		return fmt.Errorf("stoa's cat: %v", err)
	}
	rows = nil
	if out != "" {
		rows = strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	}
	if got, err = parse(rows); err != nil {
		return err
	}
	if d := differ(got, want); d != "" {
		return fmt.Errorf("stoa reads %s", d)
	}
	j.compared += 2 * len(want) * len(t.columns)
	if _, err := j.run(t.flags("verify", j.path(t.dir))...); err != nil {
		return fmt.Errorf("stoa's verify: %v", err)
	}
	return nil
}

// counts has Spark count the rows for which a predicate is true; "": all.
func (j *judge) counts(t *table, where string, want int) error {
	query := "select count(*) n from " + t.name
	if where != "" {
		query += " where " + where
	}
	rows, err := j.sql(query)
	if n := fmt.Sprintf(`[{"n":%d}]`, want); err != nil || fmt.Sprint(rows) != n {
		return fmt.Errorf("Spark answers %v (%v) to %s, want %s", rows, err, query, n)
	}
	return nil
}
