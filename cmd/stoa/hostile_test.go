package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"stoa"
	"stoa/fault"
	"stoa/format"
)

// What a hostile file may cost, when pages may have 4 MiB and metadata 1 MiB: so much memory allocated in all, and so long.
const (
	hostileMemory = 640 << 20
	hostileTime   = 20 * time.Second
)

var hostileLimits = format.Limits{Page: 4 << 20, Metadata: 1 << 20}

// TestHostile: files of every format whose numbers lie, and texts made to hurt, are opened, scanned, verified, described and recovered
// within a budget of memory and time, and blame nobody but the file.
func TestHostile(t *testing.T) {
	for _, src := range faultSources(t) {
		info, err := os.Stat(src.uri)
		if err != nil || info.IsDir() {
			continue // directories have fuzz targets of their own
		}
		b, err := os.ReadFile(src.uri)
		if err != nil {
			t.Fatal(err)
		}
		n := 60
		if testing.Short() {
			n = 8
		}
		for i := range n {
			bad := bytes.Clone(b)
			at := i * (len(bad) - 8) / n
			if i%2 == 1 { // headers and footers lie at the ends
				at = len(bad) - 8 - (i/2*2)%min(64, len(bad)-8)
			}
			binary.LittleEndian.PutUint64(bad[at:], []uint64{0x7fffffff7fffffff, 0xffffffffffffffff, 0x0000000010000000}[i%3])
			hostile(t, fmt.Sprintf("%s, 8 bytes at %d", src.name, at), filepath.Ext(src.uri), bad)
		}
	}
	deep := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000) + "\n"
	for _, x := range []struct{ what, ext, text string }{
		{"a million columns", ".csv", strings.Repeat("c,", 1_000_000) + "c\n1\n"},
		{"a field that does not end", ".csv", "a,b\n1,\"" + strings.Repeat("x", 8<<20)},
		{"deep objects", ".jsonl", deep},
		{"deep lists", ".jsonl", `{"a":` + strings.Repeat("[", 1_000_000) + "\n"},
	} {
		hostile(t, x.what, x.ext, []byte(x.text))
	}
}

// hostile does everything to a file.
func hostile(t *testing.T, what, ext string, content []byte) {
	name := filepath.Join(t.TempDir(), "f"+ext)
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), hostileTime)
	defer cancel()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	blame := func(err error) {
		if errors.Is(err, fault.Bug) {
			t.Errorf("%s: %v", what, err)
		}
	}
	o := stoa.OpenOptions{Formats: allFormats(), Limits: hostileLimits}
	for _, o.Recover = range []bool{false, true} {
		tab, err := stoa.Open(ctx, name, o)
		if err != nil {
			blame(err)
			continue
		}
		for _, err := range tab.Scan(ctx, stoa.ScanSpec{Damaged: stoa.SkipRows}) {
			blame(err)
		}
		tab.Close()
	}
	for _, err := range stoa.Verify(ctx, name, o) {
		blame(err)
	}
	for _, err := range stoa.Describe(ctx, name, stoa.DescribeOptions{OpenOptions: o}) {
		blame(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > hostileMemory {
		t.Errorf("%s: %d MB were allocated", what, n>>20)
	}
	if ctx.Err() != nil {
		t.Errorf("%s took more than %s", what, hostileTime)
	}
}
