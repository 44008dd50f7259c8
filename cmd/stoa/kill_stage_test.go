//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestKilledJobs runs jobs of three tasks whose attempts, commits and aborts are killed at random moments, and repeated
// until one ends by itself. After each kill a reader sees all rows of the job, or none; at the end the table has the
// rows of every committed job once, and those of no other, and nothing is left beside it. STOA_KILLS says how many jobs
// there are of each kind of table.
func TestKilledJobs(t *testing.T) {
	jobs := 1
	if n, err := strconv.Atoi(os.Getenv("STOA_KILLS")); err == nil {
		jobs = n
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("STOA_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("seed %d", seed)
	for i, to := range []string{"cfile", "trevni", "redfile", "parquet", ""} {
		t.Run("to "+to, func(t *testing.T) {
			t.Parallel()
			k := &jobKiller{t: t, r: rand.New(rand.NewPCG(seed, uint64(i))), dir: t.TempDir(), to: to,
				want: map[int]int{}}
			k.begin()
			for job := range jobs {
				k.run(job)
			}
			t.Logf("%d jobs: %d processes killed, %d ended", jobs, k.killed, k.ended)
		})
	}
}

// jobKiller writes one table by jobs.
type jobKiller struct {
	t             *testing.T
	r             *rand.Rand
	dir, to       string
	want          map[int]int // rows of each job that was committed
	killed, ended int
}

func (k *jobKiller) table() string {
	if k.to == "" {
		return filepath.Join(k.dir, "store") + "#db.t"
	}
	return filepath.Join(k.dir, "table")
}

func (k *jobKiller) begin() {
	if k.to != "" {
		return
	}
	columns := filepath.Join(k.dir, "columns.txt")
	err := os.WriteFile(columns, []byte("job bigint\ntask bigint\nn bigint\n"), 0o666)
	if out, err := k.command("create", k.table(), "--schema", columns).CombinedOutput(); err != nil {
		k.t.Fatalf("create: %v: %s", err, out)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *jobKiller) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append(args, "-q")...)
	cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
	return cmd
}

// once runs a command, kills it at a random moment of about the time that it needs, and reports whether it ended by
// itself.
func (k *jobKiller) once(kills int, input string, args ...string) (ended bool, out string, err error) {
	cmd := k.command(args...)
	var b bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &b, &b
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	after := time.Duration(k.r.Int64N(int64(200 * time.Millisecond << min(kills, 10)))) // a busy machine needs longer
	timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
	err = cmd.Wait()
	timer.Stop()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() < 0 {
		k.killed++
		return false, b.String(), nil
	}
	k.ended++
	return true, b.String(), err
}

const jobTasks = 3

func (k *jobKiller) run(job int) {
	name, rows := fmt.Sprint("job-", job), 0
	var winners []string
	for task := range jobTasks {
		n := k.r.IntN(2000)
		rows += n
		for attempt := 0; ; attempt++ {
			ended, out, err := k.once(attempt, jobRows(job, task, n), k.stageArgs(name, task, attempt)...)
			if ended && err != nil {
				k.t.Fatalf("stage: %v: %s", err, out)
			}
			if ended {
				winners = append(winners, fmt.Sprint(attempt, "\n"))
				break
			}
		}
	}
	k.seen(job, 0)
	if k.r.IntN(4) == 0 {
		k.end(job, rows, "no job", "load", k.table(), "--abort", name)
	} else if k.want[job] = rows; k.r.IntN(2) == 0 {
		k.end(job, rows, "no job", "load", k.table(), "--commit", name, "--tasks", fmt.Sprint(jobTasks))
	} else {
		list := filepath.Join(k.t.TempDir(), "winners")
		if err := os.WriteFile(list, []byte(strings.Join(winners, "")), 0o666); err != nil {
			k.t.Fatal(err)
		}
		k.end(job, rows, "no job", "load", k.table(), "--commit", name, "--winners", list)
	}
	k.seen(job, rows)
	for _, at := range []string{k.dir, filepath.Join(k.dir, "store", "db")} {
		if left, _ := filepath.Glob(filepath.Join(at, ".*stage*")); len(left) > 0 {
			k.t.Fatalf("left: %v", left)
		}
	}
}

func (k *jobKiller) stageArgs(name string, task, attempt int) []string {
	args := []string{"load", k.table(), "-", "--from", "jsonl", "--schema", "job: int64, task: int64, n: int64",
		"--stage", name, "--task", fmt.Sprint(task), "--attempt", fmt.Sprint(attempt)}
	if k.to != "" {
		args = append(args, "--to", k.to)
	}
	return args
}

func jobRows(job, task, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"job\":%d,\"task\":%d,\"n\":%d}\n", job, task, i)
	}
	return b.String()
}

// end repeats a command until it ends by itself. That there is no job any longer says that a killed one was done.
func (k *jobKiller) end(job, rows int, gone string, args ...string) {
	for kills := 0; ; kills++ {
		ended, out, err := k.once(kills, "", args...)
		k.seen(job, rows)
		if !ended {
			continue
		}
		if err != nil && (kills == 0 || !strings.Contains(out, gone)) {
			k.t.Fatalf("%v: %v: %s", args, err, out)
		}
		return
	}
}

// seen compares the table with what was committed. The rows of the job in work are all there, or none is.
func (k *jobKiller) seen(job, rows int) {
	got := map[int]int{}
	for _, line := range k.read() {
		var row struct{ Job, Task, N int }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			k.t.Fatal(err)
		}
		got[row.Job]++
	}
	for j, n := range k.want {
		if got[j] != n && (j != job || got[j] != 0) {
			k.t.Fatalf("job %d: expected %d rows, found %d", j, n, got[j])
		}
	}
	if _, committed := k.want[job]; !committed && got[job] != 0 {
		k.t.Fatalf("job %d is not committed, and %d of its %d rows are there", job, got[job], rows)
	}
}

func (k *jobKiller) read() []string {
	if _, err := os.Stat(filepath.Join(k.dir, "table")); err != nil && k.to != "" {
		return nil
	}
	var out, errs bytes.Buffer
	if st := run(context.Background(), []string{"cat", k.table(), "-f", "jsonl", "-q"}, strings.NewReader(""), &out,
		&errs); st != 0 {
		k.t.Fatalf("cat: status %d: %s", st, errs.String())
	}
	return strings.Fields(out.String())
}
