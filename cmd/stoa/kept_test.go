package main

import (
	"bytes"
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestNothingIsKept: a process that runs one command line after the other keeps nothing of them: no memory, no
// goroutine. (What is served to internal/attack once grew by a quarter of a megabyte a line.)
func TestNothingIsKept(t *testing.T) {
	corpus := filepath.Join("..", "..", "corpus")
	red, cfile := filepath.Join(corpus, "redfile", "red1", "flat_pages.red"),
		filepath.Join(corpus, "kudu", "1.18.1", "key_string", "k.ck.cfile")
	lines := [][]string{{"cat", red, "-f", "jsonl"}, {"verify", cfile}, {"head", cfile, "-n", "3"}, {"ls", red},
		{"stats", red},
		{"recover", red, "-o", filepath.Join(t.TempDir(), "o.jsonl")}, {"cat", "missing"}, {"nonsense"}}
	held := func(rounds int) (heap int64, goroutines int) {
		for range rounds {
			for _, l := range lines {
				var out, err bytes.Buffer
				run(context.Background(), l, strings.NewReader(""), &out, &err)
			}
		}
		runtime.GC()
		runtime.GC() // what pools held goes with the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc), runtime.NumGoroutine()
	}
	was, routines := held(3) // what is made once
	is, now := held(15)
	const most = 15 * 8 * 8 << 10 // 8 KiB a line
	if is-was > most {
		t.Errorf("after 120 lines more %d KiB more are held", (is-was)>>10)
	}
	if now > routines+2 { // one that is about to end is none that is kept
		t.Errorf("after 120 lines more %d goroutines more", now-routines)
	}
}
