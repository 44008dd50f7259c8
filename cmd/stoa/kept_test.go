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

// TestNoLeaks: a process that runs many command lines leaks no memory, goroutine or open file, whichever format it
// reads or writes, intact or damaged. (The process that serves internal/attack once grew by 256 KiB a line.)
func TestNoLeaks(t *testing.T) {
	dir, out := filepath.Join(t.TempDir(), "try"), t.TempDir()
	one := func(line ...string) int {
		var stdout, stderr bytes.Buffer
		return run(context.Background(), line, strings.NewReader(""), &stdout, &stderr)
	}
	if st := one("demo", dir, "--damage"); st != cli.StatusFine {
		t.Fatalf("demo: got status %d, want 0", st)
	}
	sources := []string{dir, dir + "/kudu#d_major", dir + "/carbon/managed_del", dir + "/damaged/key.cfile",
		dir + "/damaged/cut.cfile", dir + "/damaged/primitives.trv", "missing"}
	for _, to := range []string{"parquet", "arrow", "cfile", "csv", "jsonl", "carbon", "trevni-avro", "redfile"} {
		source := filepath.Join(out, "in."+to)
		if st := one("convert", dir+"/flat.red", "-o", source, "--to", to); st != cli.StatusFine {
			t.Fatalf("convert --to %s: got status %d, want 0", to, st)
		}
		sources = append(sources, source)
	}
	lines := [][]string{{"nonsense"}, {"cat", "--nonsense"}}
	for _, p := range sources {
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
		runtime.GC() // the second empties pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		open, _ := os.ReadDir("/proc/self/fd") // empty on systems without it
		return int64(m.HeapAlloc), runtime.NumGoroutine(), len(open)
	}
	heapBefore, routinesBefore, filesBefore := held(2) // includes what is made once
	rounds := 4
	if testing.Short() {
		rounds = 2
	}
	heap, routines, files := held(rounds)
	n := rounds * len(lines)
	if limit := int64(n) << 10; heap-heapBefore > limit { // 1 KiB a line
		t.Errorf("%d more lines: the heap grew by %d KiB, want at most %d", n, (heap-heapBefore)>>10, limit>>10)
	}
	if routines > routinesBefore+2 { // some may be about to end
		t.Errorf("%d more lines: got %d more goroutines, want at most 2", n, routines-routinesBefore)
	}
	if files > filesBefore {
		t.Errorf("%d more lines: got %d more open files, want none", n, files-filesBefore)
	}
}
