//go:build linux

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/kudu/kudufs"
)

// rowBytes is about what a row of randomTable takes in Kudu's files.
const rowBytes = 150

// randomTable writes the directories of a Kudu server with a table of random rows in four tablets. If group is 1, its
// rows come in the order of the key, and no rowsets of a tablet overlap; otherwise the order within each group of rows
// is that of the multiples of a prime, and all rowsets of a group overlap.
func randomTable(t *testing.T, dir, name string, rows, group, rowset int64) {
	t.Helper()
	text := arrow.BinaryTypes.String
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "x",
		Type: arrow.PrimitiveTypes.Float64}, {Name: "a", Type: text}, {Name: "b", Type: text, Nullable: true},
		{Name: "c", Type: text}, {Name: "d", Type: text}}, nil)
	w, err := stoa.Create(t.Context(), dir, sc, stoa.CreateOptions{Formats: []format.Format{kudufs.Format},
		To: "kudu-fs", NoCheck: true,
		Opts: map[string]string{"table": name, "key": "id", "buckets": "4", "rowset-size": fmt.Sprint(rowset)}})
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	r, word := rand.New(rand.NewPCG(uint64(rows), uint64(group))), make([]byte, 32)
	for i := range rows {
		in := i % group
		b.Field(0).(*array.Int64Builder).Append(i - in + in*1_000_003%group)
		b.Field(1).(*array.Float64Builder).Append(r.NormFloat64())
		for c := 2; c < sc.NumFields(); c++ {
			if c == 3 && i%17 == 0 {
				b.Field(c).AppendNull()
				continue
			}
			for j := 0; j < len(word); j += 8 {
				for k, bits := 0, r.Uint64(); k < 8; k, bits = k+1, bits>>8 {
					word[j+k] = '0' + byte(bits&63)
				}
			}
			b.Field(c).(*array.StringBuilder).BinaryBuilder.Append(word)
		}
		if i%8192 == 8191 || i == rows-1 {
			one := b.NewRecordBatch()
			err := w.Write(t.Context(), one)
			if one.Release(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// asCommand starts the command in a process of its own. The function that it returns waits for its end, and returns
// its peak memory in bytes, and whether it ended well.
func asCommand(t *testing.T, args ...string) (*exec.Cmd, func() (peak int64, ok bool)) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "STOA_AS_COMMAND=1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, func() (int64, bool) {
		err := cmd.Wait()
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if err != nil && !status.Signaled() {
			t.Fatalf("%v: %v: %s", args, err, &errs)
		}
		return cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10, err == nil
	}
}

// sumsOf returns the SHA-256 of each file below a directory, without the reports, which have the times of a run.
func sumsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), "report.") || d.Name() == ".stoa-convert.json" {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		_, err = io.Copy(h, f)
		out[strings.TrimPrefix(name, dir)] = fmt.Sprintf("%x", h.Sum(nil))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tablesOfReport returns of each table in a report its name, rows, checksum and the verdict of reading it back.
func tablesOfReport(t *testing.T, dir string) (out string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Tables []struct {
			Table string
			Rows  int64
			Back  struct{ Checksum, Verdict string } `json:"read_back"`
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for _, x := range doc.Tables {
		out += fmt.Sprintln(x.Table, x.Rows, x.Back.Checksum, x.Back.Verdict)
	}
	return out
}

// TestKilledAtRandom kills a rescue of two servers with SIGKILL at random moments, whatever it is doing, and resumes it
// each time: in the end every file has the rows, in the same order, of that of a run that was not killed, and the sums
// over all tables are equal. STOA_KILL_BYTES is the size of the servers; the directories are in TMPDIR.
func TestKilledAtRandom(t *testing.T) {
	t.Chdir(t.TempDir())
	size, kills := int64(24<<20), 6
	if testing.Short() {
		size, kills = 8<<20, 3
	}
	if s := os.Getenv("STOA_KILL_BYTES"); s != "" {
		var err error
		if size, err = strconv.ParseInt(s, 10, 64); err != nil {
			t.Fatal(err)
		}
		kills = 20
	}
	rows := size / rowBytes / 2
	began := time.Now()
	randomTable(t, "one", "sorted", rows, 1, min(64<<20, size/80))
	randomTable(t, "two", "shuffled", rows, max(1, rows/8), min(64<<20, size/80))
	t.Logf("written in %.0f s", time.Since(began).Seconds())
	args := []string{"rescue", "one/tserver", "two/tserver", "--file-size", fmt.Sprint(max(200<<10, size/100)),
		"--parallel", "2", "-o"}

	began = time.Now()
	_, wait := asCommand(t, append(args, "whole")...)
	peak, ok := wait()
	took := time.Since(began)
	want := sumsOf(t, "whole")
	if !ok || len(want) < 4 {
		t.Fatalf("got %d files without an interruption, want several", len(want))
	}
	t.Logf("without an interruption: %.1f s, %d files, peak memory %d MB", took.Seconds(), len(want), peak>>20)

	report := tablesOfReport(t, "whole")
	if strings.Count(report, "equal") != 2 {
		t.Errorf("report: got\n%s\nwant two tables, equal", report)
	}
	same := func() {
		t.Helper()
		got, moved := sumsOf(t, "out"), 0
		for name := range want {
			if got[name] != want[name] { // the pages of a file that a resumed run began may end at other rows
				must(t, "diff", filepath.Join("whole", name), filepath.Join("out", name))
				moved++
			}
		}
		t.Logf("%d files are the same byte for byte, %d row for row", len(want)-moved, moved)
		if now := tablesOfReport(t, "out"); len(got) != len(want) || now != report {
			t.Errorf("got %d files, want %d; report: got\n%s\nwant\n%s", len(got), len(want), now, report)
		}
	}
	r, killed, files := rand.New(rand.NewPCG(20, uint64(began.UnixNano()))), 0, []int{}
	more := append(args, "out")
	for killed < kills {
		cmd, wait := asCommand(t, more...)
		time.Sleep(time.Duration(r.Int64N(int64(took) / 3)))
		cmd.Process.Kill()
		one, ended := wait()
		peak, more = max(peak, one), append(args, "out", "--resume")
		if ended { // the next one begins anew
			same()
			if err := os.RemoveAll("out"); err != nil {
				t.Fatal(err)
			}
			more = append(args, "out")
			continue
		}
		names, _ := filepath.Glob("out/*/*.parquet")
		files = append(files, len(names))
		killed++
	}
	began = time.Now()
	_, wait = asCommand(t, more...)
	one, _ := wait()
	t.Logf("killed %d times; files after each: %v; the last run took %.1f s; peak memory %d MB", killed, files,
		time.Since(began).Seconds(), max(peak, one)>>20)
	same()
}
