package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/cmd/stoa/internal/catalogue"
	"stoa/cmd/stoa/internal/cli"
	"stoa/fault"
	"stoa/format"
	"stoa/region"
)

// The maximum cost of a hostile file if pages are limited to 4 MiB and metadata to 1 MiB: memory allocated in all, and
// time.
const (
	hostileMemory = 640 << 20
	hostileTime   = 20 * time.Second
	// With the default limits, under which a file with a million columns is read.
	defaultMemory = 5 * hostileMemory
)

var hostileLimits = format.Limits{Page: 4 << 20, Metadata: 1 << 20}

// TestHostile: files and directories of every format with wrong numbers, and malicious texts, are opened, scanned,
// verified, described and recovered within a budget of memory and time; errors blame the file, never stoa.
func TestHostile(t *testing.T) {
	for _, src := range faultSources(t) {
		info, err := os.Stat(src.uri)
		if err == nil && info.IsDir() {
			hostileDir(t, src.name, src.uri)
			continue
		}
		if err != nil { // a table in a directory
			hostileDir(t, src.name, cli.WithoutTable(src.uri))
			continue
		}
		b, err := os.ReadFile(src.uri)
		if err != nil {
			t.Fatal(err)
		}
		n := 24
		if testing.Short() {
			n = 8
		}
		if os.Getenv("STOA_LONG") != "" {
			n = 60
		}
		for i := range n {
			bad := bytes.Clone(b)
			at := i * (len(bad) - 8) / n
			if i%2 == 1 { // headers and footers are at the ends
				at = len(bad) - 8 - (i/2*2)%min(64, len(bad)-8)
			}
			binary.LittleEndian.PutUint64(bad[at:],
				[]uint64{0x7fffffff7fffffff, 0xffffffffffffffff, 0x0000000010000000}[i%3])
			hostile(t, fmt.Sprintf("%s, 8 bytes at %d", src.name, at), filepath.Ext(src.uri), bad)
		}
	}
	deep := strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000) + "\n"
	for _, x := range []struct{ what, ext, text string }{
		{"a million columns", ".csv", strings.Repeat("c,", 1_000_000) + "c\n1\n"},
		{"a million fields", ".jsonl", "{" + strings.TrimSuffix(millionFields(), ",") + "}\n"},
		{"a line of millions of fields", ".csv", "a,b\n" + strings.Repeat(",", 4<<20) + "\n"},
		{"an endless field", ".csv", "a,b\n1,\"" + strings.Repeat("x", 8<<20)},
		{"deep objects", ".jsonl", deep},
		{"deep lists", ".jsonl", `{"a":` + strings.Repeat("[", 1_000_000) + "\n"},
	} {
		hostile(t, x.what, x.ext, []byte(x.text))
	}
}

func millionFields() string {
	var b strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&b, `"f%d":1,`, i)
	}
	return b.String()
}

// hostileDir overwrites 8 bytes in each file of a directory in turn.
func hostileDir(t *testing.T, name, from string) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", filepath.Join(dir, "again")); err != nil { // a cycle
		t.Log(err)
	}
	var files []string
	filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, p)
		}
		return err
	})
	step := 1 + len(files)/12
	switch {
	case os.Getenv("STOA_LONG") != "":
		step = 1
	case testing.Short():
		step = 1 + len(files)/4
	}
	for i := 0; i < len(files); i += step {
		b, err := os.ReadFile(files[i])
		if err != nil {
			t.Fatal(err)
		}
		if len(b) < 16 {
			continue
		}
		bad := bytes.Clone(b)
		at := []int{len(b) - 8, len(b) / 2, 4}[i%3]
		binary.LittleEndian.PutUint64(bad[min(at, len(b)-8):],
			[]uint64{0x7fffffff7fffffff, 0xffffffffffffffff, 0x0000000010000000}[i%3])
		if err := os.WriteFile(files[i], bad, 0o644); err != nil {
			t.Fatal(err)
		}
		hostilePath(t, fmt.Sprintf("%s, %s, 8 bytes at %d", name, filepath.Base(files[i]), at), dir)
		if err := os.WriteFile(files[i], b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// hostile runs every operation on a file.
func hostile(t *testing.T, what, ext string, content []byte) []error {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f"+ext)
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return hostilePath(t, what, name)
}

// hostilePath runs every operation on a path, with low limits and with the default ones, and returns the errors under
// the low ones.
func hostilePath(t *testing.T, what, name string) []error {
	t.Helper()
	hostileWith(t, what+", default limits", name, format.Limits{})
	return hostileWith(t, what, name, hostileLimits)
}

func hostileWith(t *testing.T, what, name string, limits format.Limits) (met []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hostileTime)
	defer cancel()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	blame := func(err error) {
		if err == nil {
			return
		}
		met = append(met, err)
		var e *fault.Error
		if errors.Is(err, fault.Bug) || errors.Is(err, fault.Corrupt) && (!errors.As(err, &e) || e.At.Object == "") {
			t.Errorf("%s: error of class Bug, or Corrupt without an object: %v", what, err)
		}
	}
	o := stoa.OpenOptions{Formats: catalogue.Formats(), Limits: limits}
	for _, o.Recover = range []bool{false, true} {
		tab, err := stoa.Open(ctx, name, o)
		if err != nil {
			blame(err)
			continue
		}
		for _, err := range tab.Scan(ctx, stoa.ScanSpec{Damaged: stoa.SkipRows}) {
			blame(err)
		}
		for _, err := range tab.Scan(ctx, stoa.ScanSpec{}) {
			blame(err)
		}
		tab.Close()
	}
	for f, err := range stoa.Verify(ctx, name, o) {
		if err == nil && f.Severity == region.Error {
			met = append(met, errors.New(f.Code+" "+f.Message))
		}
		blame(err)
	}
	for _, err := range stoa.Describe(ctx, name, stoa.DescribeOptions{OpenOptions: o}) {
		blame(err)
	}
	runtime.ReadMemStats(&after)
	budget := uint64(hostileMemory)
	if limits == (format.Limits{}) {
		budget = defaultMemory
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > budget {
		t.Errorf("%s: %d MiB allocated, want at most %d", what, n>>20, budget>>20)
	}
	if ctx.Err() != nil {
		t.Errorf("%s: not finished after %s", what, hostileTime)
	}
	return met
}

// bombs are small files whose only page, block or batch decompresses to 12 MB: 12,000 times the same text. The limit is
// 4 MiB.
var bombs = []struct{ ext, format, opts string }{
	{".cfile", "cfile", "encoding=plain block-size=15000000 compression=lz4"},
	{".cfile", "cfile", "encoding=plain block-size=15000000 compression=snappy"},
	{".cfile", "cfile", "encoding=plain block-size=15000000 compression=zlib"},
	{".red", "redfile", "page-size=15000000 compression=snappy"},
	{".red", "redfile", "page-size=15000000 compression=gzip"},
	{".trv", "trevni-avro", "block-size=15000000 codec=deflate"},
	{".trv", "trevni-avro", "block-size=15000000 codec=snappy"},
	{".trv", "trevni", "block-size=15000000 codec=bzip2"},
	{".parquet", "parquet", "page-size=15000000 dictionary=false compression=snappy"},
	{".parquet", "parquet", "page-size=15000000 dictionary=false compression=zstd"},
	{".parquet", "parquet", "page-size=15000000 dictionary=false compression=gzip"},
	{".parquet", "parquet", "page-size=15000000 dictionary=false compression=brotli"},
	{".parquet", "parquet", "page-size=15000000 dictionary=false compression=lz4"},
	{".arrow", "arrow", "compression=lz4"},
	{".arrow", "arrow", "compression=zstd"},
	{"", "carbon", "page-size=16 local-dictionary=false compression=snappy"},
	{"", "carbon", "page-size=16 local-dictionary=false compression=zstd"},
	{"", "carbon", "page-size=16 local-dictionary=false compression=gzip"},
}

// TestBombs: data whose decompressed size exceeds the limit is an error of class Limit with a location, before memory
// is allocated.
func TestBombs(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 12 MB for every codec")
	}
	sc := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	text := strings.Repeat("a", 1000)
	for range 12_000 {
		rb.Field(0).(*array.StringBuilder).Append(text)
	}
	rec := rb.NewRecordBatch()
	ctx := context.Background()
	for _, b := range bombs {
		what := b.format + " " + b.opts
		opts := map[string]string{}
		for _, kv := range strings.Fields(b.opts) {
			k, v, _ := strings.Cut(kv, "=")
			opts[k] = v
		}
		name := filepath.Join(t.TempDir(), "bomb"+b.ext)
		w, err := stoa.Create(ctx, name, sc, stoa.CreateOptions{Formats: catalogue.Formats(), To: b.format, Opts: opts})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if err := w.Write(ctx, rec); err != nil {
			t.Fatal(what, err)
		}
		if _, err := w.Close(ctx); err != nil {
			t.Fatal(what, err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		limited := false
		for _, err := range hostilePath(t, what, name) {
			var e *fault.Error
			if errors.As(err, &e) && e.Class == fault.Limit && e.At.Object != "" {
				limited = true
			}
		}
		t.Logf("%s: %d bytes, limited %v", what, info.Size(), limited)
		if !limited {
			t.Errorf("%s: got no error of class Limit for %d bytes", what, info.Size())
		}
	}
}

// TestHostileShapes: files crafted with cycles, excessive depth or excessive width are refused.
func TestHostileShapes(t *testing.T) {
	wants := func(what, want string, met []error) {
		t.Helper()
		for _, err := range met {
			if strings.Contains(err.Error(), want) {
				return
			}
		}
		t.Errorf("%s: got %v, want an error with %q", what, met, want)
	}
	wants("a cycle in an index tree", "index", hostile(t, "a cycle in an index tree", ".cfile", cycle(t)))
	deep := func(magic string) []byte {
		b := append([]byte(magic), bytes.Repeat([]byte{0x1c}, 500_000)...)
		b = binary.LittleEndian.AppendUint32(b, 500_000)
		return append(b, magic...)
	}
	wants("deep structs in Parquet's footer", "footer",
		hostile(t, "deep structs in Parquet's footer", ".parquet", deep("PAR1")))
	wants("deep structs in RED1's footer", "f.red", hostile(t, "deep structs in RED1's footer", ".red", deep("RED1")))
	wide := []byte("PAR1\x15\x02\x19\xfc") // version 1, then a list of structs with a long length
	wide = binary.AppendUvarint(wide, 1_000_001)
	wide = append(wide, "\x35\x00\x18\x01r\x15\x80\x89\x7a\x00"...) // the root: 1,000,000 children
	wide = append(wide, bytes.Repeat([]byte("\x15\x02\x25\x00\x18\x01c\x00"), 1_000_000)...)
	n := len(wide) - 4
	wide = append(binary.LittleEndian.AppendUint32(wide, uint32(n)), "PAR1"...)
	wants("a million columns in Parquet", "footer", hostile(t, "a million columns in Parquet", ".parquet", wide))
}

// cycle is a CFile whose index has a leaf entry that points back to the root.
func cycle(t *testing.T) []byte {
	name := filepath.Join(t.TempDir(), "c.cfile")
	var rows strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&rows, "%d\n", i*7)
	}
	if err := os.WriteFile(name+".csv", []byte("v\n"+rows.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"convert", name + ".csv", "-o", name, "-q", "--opt", "checksums=false", "--opt",
		"index-block-size=256", "--opt", "block-size=256"}
	if st := run(context.Background(), args, nil, io.Discard, os.Stderr); st != 0 {
		t.Fatalf("convert: got status %d, want 0", st)
	}
	type at struct{ off, n int64 }
	var root, leaf at
	for n, err := range stoa.Describe(context.Background(), name, stoa.DescribeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case n.Name == "posidx":
			root = at{n.At.Off, n.At.Len}
		case strings.HasPrefix(n.Name, "posidx/entry[") && strings.HasPrefix(n.Value, "leaf") && n.At.Off > 1<<14:
			leaf = at{n.At.Off, n.At.Len}
		}
	}
	pointer := func(a at) []byte {
		return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(a.off)), uint64(a.n))
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.LastIndex(b[:root.off+root.n], pointer(leaf))
	if i < int(root.off) || len(pointer(root)) != len(pointer(leaf)) {
		t.Fatalf("root %v, leaf %v: found at %d", root, leaf, i)
	}
	copy(b[i:], pointer(root))
	return b
}
