package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
)

// TestNothingIsKept: a process that runs one command line after the other keeps nothing of them: no memory, no
// goroutine, no open file, whichever format it reads or writes, and whether that is damaged. (What is served to
// internal/attack once grew by a quarter of a megabyte a line.)
func TestNothingIsKept(t *testing.T) {
	dir, out := filepath.Join(t.TempDir(), "try"), t.TempDir()
	one := func(line ...string) int {
		var stdout, stderr bytes.Buffer
		return run(context.Background(), line, strings.NewReader(""), &stdout, &stderr)
	}
	if st := one("demo", dir, "--damage"); st != cli.StatusFine {
		t.Fatal("demo ends with", st)
	}
	places := []string{dir, dir + "/kudu#d_major", dir + "/carbon/managed_del", dir + "/damaged/key.cfile",
		dir + "/damaged/cut.cfile", dir + "/damaged/primitives.trv", "missing"}
	for _, to := range []string{"parquet", "arrow", "cfile", "csv", "jsonl", "carbon", "trevni-avro", "redfile"} {
		place := filepath.Join(out, "in."+to)
		if st := one("convert", dir+"/flat.red", "-o", place, "--to", to); st != cli.StatusFine {
			t.Fatal(to, "ends with", st)
		}
		places = append(places, place)
	}
	lines := [][]string{{"nonsense"}, {"cat", "--nonsense"}}
	for _, p := range places {
		for _, verb := range []string{"cat -f jsonl", "head", "verify", "ls", "stats", "describe",
			"cat --damaged skip-rows", "recover -o OUT/o.jsonl", "recover -o OUT/o.parquet",
			"convert --all --to arrow -o OUT/all"} {
			lines = append(lines, append(strings.Fields(strings.ReplaceAll(verb, "OUT", out)), p))
		}
	}
	held := func(rounds int) (heap int64, goroutines, files int) {
		for range rounds {
			for _, l := range lines {
				one(l...)
				for _, name := range []string{"o.jsonl", "o.parquet", "all"} {
					os.RemoveAll(filepath.Join(out, name))
				}
			}
		}
		runtime.GC()
		runtime.GC() // what pools held goes with the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		open, _ := os.ReadDir("/proc/self/fd") // none where there is no such directory
		return int64(m.HeapAlloc), runtime.NumGoroutine(), len(open)
	}
	wasHeap, wasRoutines, wasFiles := held(2) // what is made once
	const rounds = 4
	heap, routines, files := held(rounds)
	n := rounds * len(lines)
	if most := int64(n) << 10; heap-wasHeap > most { // 1 KiB a line
		t.Errorf("after %d lines more %d KiB more are held", n, (heap-wasHeap)>>10)
	}
	if routines > wasRoutines+2 { // one that is about to end is none that is kept
		t.Errorf("after %d lines more there are %d goroutines more", n, routines-wasRoutines)
	}
	if files > wasFiles {
		t.Errorf("after %d lines more %d files more are open", n, files-wasFiles)
	}
}
