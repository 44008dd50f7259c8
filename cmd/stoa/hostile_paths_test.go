package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/cmd/stoa/internal/catalogue"
	"stoa/fault"
	sums "stoa/internal/sum"
	"stoa/region"
	"stoa/store"
)

// wayOut is a table, evil, in whose metadata a name leads out of its directory into that of the table victim, whose
// files would fit.
type wayOut struct {
	format string
	make   func(t *testing.T, dir string) // makes the directory of a healthy table, both for evil and for victim
	in     string                         // a glob of the files of evil to change
	old    string
	new    string
	fix    func(t *testing.T, b []byte) []byte // makes the changed file consistent; nil: it is
	open   string                              // the file of evil to open; "": the directory
	// part of a message of opening, reading or verifying; "": the name is not used, so that none is expected
	message string
}

const redPart = "part-00001.red"

// waysOut are attacks on all formats whose metadata has names of files.
var waysOut = []wayOut{
	{format: "carbon", make: carbonSample("managed_gsort"), in: "Metadata/segments/*", old: "/Fact",
		new: "/../victim/Fact", message: "is outside of the table"},
	{format: "carbon", make: carbonSample("managed_del"), in: "Metadata/tableupdatestatus-*",
		old: `"segmentName":"1"`, new: `"segmentName":"../../victim/Fact/Part0/Segment_0"`,
		message: "the table has no segment"},
	{format: "carbon", make: carbonSample("managed_del"), in: "Metadata/tableupdatestatus-*",
		old: `"blockName":"part`, new: `"blockName":"../../../../victim/Fact/Part0/Segment_0/part`,
		message: "tableupdatestatus"},
	{format: "carbon", make: carbonSample("managed_del"), in: "Metadata/tablestatus", old: `"tableupdatestatus-`,
		new: `"../../victim/Metadata/tableupdatestatus-`, message: "tablestatus"},
	{format: "carbon", make: carbonSample("managed_del"), in: "Metadata/tablestatus", old: `"segmentFile":"`,
		new: `"segmentFile":"../../../victim/Metadata/segments/`, message: "tablestatus"},
	{format: "carbon", make: carbonSample("managed_del"), in: "Metadata/tablestatus", old: `"loadName":"1"`,
		new: `"loadName":"../../../../victim/Fact/Part0/Segment_1"`, message: "tablestatus"},
	{format: "carbon", make: carbonSample("managed_del"), in: "Metadata/segments/*", old: `"mergeFileName":"`,
		new: `"mergeFileName":"../../../../victim/Fact/Part0/Segment_0/`, message: "segments"},
	{format: "carbon", make: carbonSample("managed_del"), in: "Fact/Part0/Segment_2/*.carbonindexmerge",
		old: "part-0-0_batchno0-0-2-1795249942096.snappy.carbondata",
		new: "../../../../victim/Fact/Part0/Se/nt.snappy.carbondata", message: "index"},
	{format: "cfile", make: converted("cfile"), in: "table.json", old: `"b.cfile"`, new: `"../victim/b.cfile"`,
		message: "table.json"},
	{format: "cfile", make: converted("cfile"), in: "table.json", old: `"b.cfile"`,
		new: `"sub/../../victim/b.cfile"`, message: "table.json"},
	{format: "redfile", make: converted("redfile", "split=row-group", "row-group-rows=2", "crc=false"),
		in: "_metadata.red", old: redPart, new: "../victim/1.red"[:len(redPart)],
		message: "leads out of the directory"},
	{format: "redfile", make: converted("redfile", "split=row-group", "row-group-rows=2", "crc=false"),
		in: "_metadata.red", old: redPart, new: "/tmp/stoa/p.red"[:len(redPart)],
		message: "leads out of the directory"},
	{format: "parquet", make: parquetIn("_metadata"), in: "_metadata", fix: elsewhere("../victim/_metadata"),
		open: "_metadata", message: `the data are in another file, "../victim/_metadata"`},
	{format: "parquet", make: parquetIn("a.parquet"), in: "a.parquet", fix: elsewhere("../victim/a.parquet"),
		message: `the data are in another file, "../victim/a.parquet"`},
	{format: "kudu", make: kuduSample, in: "wal/tablet-meta/*", old: "278202899f1b42a1ad91c6f94fc4d476",
		new: "../../../../../victim/wal/tablet", fix: containerSums, message: "tablet"},
	{format: "kudu", make: kuduSample, in: "wal/consensus-meta/*", old: "23f0bd7db2824c3382b7601bbfda34f2",
		new: "../../../../../victim/wal/tablet", fix: containerSums},
	{format: "kudu", make: kuduSample, in: "wal/instance", old: "23f0bd7db2824c3382b7601bbfda34f2",
		new: "../../../../../victim/wal/instan", fix: containerSums},
	{format: "kudu", make: kuduSample, in: "data/data/block_manager_instance", old: "", new: "", fix: pathSet},
}

func carbonSample(table string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { copyDir(t, "../../corpus/carbon/2.3.0/managed/"+table, dir) }
}

func kuduSample(t *testing.T, dir string) { copyDir(t, "../../format/kudu/testdata/history", dir) }

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

const wayOutRows = "a,b\n1,x\n2,y\n3,z\n4,w\n"

// converted makes a directory of files of a format.
func converted(to string, opts ...string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		args := []string{"convert", "-", "--from", "csv", "-q", "--to", to, "-o", dir + "/"}
		for _, o := range opts {
			args = append(args, "--opt", o)
		}
		if st := run(context.Background(), args, strings.NewReader(wayOutRows), io.Discard, os.Stderr); st != 0 {
			t.Fatalf("convert: got status %d, want 0", st)
		}
	}
}

func parquetIn(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		args := []string{"convert", "-", "--from", "csv", "-q", "--to", "parquet", "--columns", "a", "--opt",
			"page-index=false", "-o", filepath.Join(dir, name)}
		if st := run(context.Background(), args, strings.NewReader(wayOutRows), io.Discard, os.Stderr); st != 0 {
			t.Fatalf("convert: got status %d, want 0", st)
		}
	}
}

// elsewhere inserts file_path, field 1, in front of file_offset, field 2, in the only ColumnChunk of a Parquet file.
func elsewhere(name string) func(*testing.T, []byte) []byte {
	return func(t *testing.T, b []byte) []byte {
		b = bytes.ReplaceAll(b, []byte("stoa.footer"), []byte("else.footer")) // drops the footer's checksum
		file := filepath.Join(t.TempDir(), "f.parquet")
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
		for n, err := range stoa.Describe(context.Background(), file,
			stoa.DescribeOptions{OpenOptions: stoa.OpenOptions{Formats: catalogue.Formats()}}) {
			if err != nil {
				t.Fatal(err)
			}
			// the header of an i64 whose field number is two, or one, greater than that of the field before
			const afterNone, afterFirst = 0x26, 0x16
			if at := n.At.Off; n.Name == "file_offset" && b[at] == afterNone {
				field := append([]byte{0x18, byte(len(name))}, name...)
				out := append(append(bytes.Clone(b[:at]), field...), b[at:]...)
				out[int(at)+len(field)] = afterFirst
				length := out[len(out)-8:]
				binary.LittleEndian.PutUint32(length, binary.LittleEndian.Uint32(length)+uint32(len(field)))
				return out
			}
		}
		t.Fatal("no file_offset")
		return nil
	}
}

// containerSums sets the checksums of a protobuf container of version 2.
func containerSums(t *testing.T, b []byte) []byte {
	for at := 16; at < len(b); {
		n := int(binary.LittleEndian.Uint32(b[at:]))
		binary.LittleEndian.PutUint32(b[at+8+n:], sums.CRC32C(b[at+8:at+8+n]))
		at += 12 + n
	}
	return b
}

// pathSet replaces the last UUID in the path set of a data directory by a path to the victim.
func pathSet(t *testing.T, b []byte) []byte {
	digits := 0
	for i := len(b) - 1; i >= 0; i-- {
		if !strings.ContainsRune("0123456789abcdef", rune(b[i])) {
			digits = 0
			continue
		}
		if digits++; digits == 32 {
			copy(b[i:], "../../../../victim/data/aaaaaaaa")
			return containerSums(t, b)
		}
	}
	t.Fatal("no UUID")
	return nil
}

// watched is the local files; it records the names of all files opened and directories listed.
type watched struct {
	store.Local
	names *[]string
}

func (w watched) Open(ctx context.Context, name string) (store.Source, error) {
	*w.names = append(*w.names, name)
	return w.Local.Open(ctx, name)
}

func (w watched) List(ctx context.Context, dir string) iter.Seq2[store.Info, error] {
	*w.names = append(*w.names, dir)
	return w.Local.List(ctx, dir)
}

// TestHostilePaths: no operation follows names in metadata that lead out of a table's directory, and they are reported
// with their location.
func TestHostilePaths(t *testing.T) {
	for _, c := range waysOut {
		name := c.format + " " + c.in + " " + c.new
		dir := t.TempDir()
		evil := filepath.Join(dir, "evil")
		c.make(t, filepath.Join(dir, "victim"))
		c.make(t, evil)
		corrupt(t, evil, c)
		uri := filepath.Join(evil, c.open)
		var names []string
		o := stoa.OpenOptions{Formats: catalogue.Formats(), Tree: watched{names: &names}}
		messages := readEverything(t, name, uri, o)
		for _, n := range names {
			real, err := filepath.EvalSymlinks(n)
			if err != nil {
				real, err = filepath.Abs(n)
			}
			if err != nil || strings.HasPrefix(real, filepath.Join(dir, "victim")) ||
				strings.HasPrefix(real, "/tmp/stoa") {
				t.Errorf("%s: %s opened", name, n)
			}
		}
		if len(names) == 0 {
			t.Errorf("%s: no file opened, want some", name)
		}
		if c.message != "" && !strings.Contains(messages, c.message) {
			t.Errorf("%s: got messages\n%s\nwant one with %q", name, messages, c.message)
		}
	}
}

// corrupt changes the names in the files of evil.
func corrupt(t *testing.T, evil string, c wayOut) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(evil, c.in))
	if err != nil || len(files) == 0 {
		t.Fatal(c.in, err)
	}
	changed := false
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		bad := b
		if c.old != "" {
			bad = bytes.ReplaceAll(b, []byte(c.old), []byte(c.new))
		}
		if c.fix != nil && (c.old == "" || !bytes.Equal(bad, b)) {
			bad = c.fix(t, bytes.Clone(bad))
		}
		changed = changed || !bytes.Equal(bad, b)
		if err := os.WriteFile(f, bad, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !changed {
		t.Fatalf("%s: no %q in the file", c.in, c.old)
	}
}

// readEverything opens, reads, recovers, verifies and describes a source, and returns all messages.
func readEverything(t *testing.T, name, uri string, o stoa.OpenOptions) string {
	ctx := context.Background()
	var messages strings.Builder
	add := func(err error) {
		if err == nil {
			return
		}
		if errors.Is(err, fault.Bug) {
			t.Errorf("%s: %v", name, err)
		}
		messages.WriteString(err.Error() + "\n")
	}
	report := func(f region.Finding) { messages.WriteString(f.At.String() + " " + f.Path + " " + f.Message + "\n") }
	for _, o.Recover = range []bool{false, true} {
		tab, err := stoa.Open(ctx, uri, o)
		if add(err); err != nil {
			continue
		}
		for _, policy := range []stoa.Damaged{stoa.Fail, stoa.NullCells} {
			for _, err := range tab.Scan(ctx,
				stoa.ScanSpec{Damaged: policy, Lost: func(l region.Loss) { add(l.Err) }}) {
				add(err)
			}
		}
		for _, f := range tab.Findings() {
			report(f)
		}
		add(tab.Close())
	}
	for f, err := range stoa.Verify(ctx, uri, o) {
		if add(err); err == nil {
			report(f)
		}
	}
	for _, err := range stoa.Describe(ctx, uri, stoa.DescribeOptions{OpenOptions: o}) {
		add(err)
	}
	return messages.String()
}

// TestHostileSplits: a split that names a part outside its source is refused, and nothing of it is read.
func TestHostileSplits(t *testing.T) {
	for _, c := range []wayOut{
		{format: "carbon", make: carbonSample("managed_del"), old: "/evil/Fact", new: "/victim/Fact"},
		{format: "carbon", make: carbonSample("managed_del"), old: "/evil/Fact", new: "/evil/../victim/Fact"},
		{format: "redfile", make: converted("redfile", "split=row-group", "row-group-rows=2"),
			old: `evil/_metadata.red","stamp":"`, new: `victim/_metadata.red","stamp":"`, open: "_metadata.red"},
		{format: "cfile", make: converted("cfile"), old: `"part":"`, new: `"part":"../victim/`},
		{format: "parquet", make: parquetIn("a.parquet"), old: `"part":"`, new: `"part":"/nowhere/../`},
		{format: "kudu", make: kuduSample, old: `"part":"`, new: `"part":"../../victim/`},
	} {
		dir := t.TempDir()
		evil := filepath.Join(dir, "evil")
		c.make(t, filepath.Join(dir, "victim"))
		c.make(t, evil)
		var out, errs bytes.Buffer
		uri := filepath.Join(evil, c.open)
		if st := run(context.Background(), []string{"plan", uri}, strings.NewReader(""), &out, &errs); st != 0 {
			t.Fatalf("%s: status %d: %s", c.format, st, &errs)
		}
		split := firstSplit(out.Bytes())
		head, pieces, ok := strings.Cut(split, `"pieces":`)
		bad := strings.ReplaceAll(pieces, c.old, c.new)
		if !ok || bad == pieces {
			t.Fatalf("%s: no %q in %s", c.format, c.old, pieces)
		}
		out.Reset()
		errs.Reset()
		st := run(context.Background(), []string{"scan", "--split", "-"}, strings.NewReader(head+`"pieces":`+bad),
			&out, &errs)
		// The output is at most the torn message that marks a stream as aborted: 8 of 64 bytes.
		torn := "\xff\xff\xff\xff\x40" + strings.Repeat("\x00", 11)
		if st == 0 || out.Len() > 0 && out.String() != torn || !strings.Contains(errs.String(), "not in this place") {
			t.Errorf("%s, %s: got status %d, %d bytes of rows, want an error and none: %s", c.format, c.new, st,
				out.Len(), &errs)
		}
	}
}
