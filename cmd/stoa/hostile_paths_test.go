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

// wayOut is a table, evil, in whose metadata a name leads out of its directory, to another one, victim, whose
// files would fit.
type wayOut struct {
	format string
	make   func(t *testing.T, dir string) // makes the directory of a healthy table; evil and victim begin as the same
	in     string                         // the files of evil that are changed, a glob
	old    string
	new    string
	fix    func(t *testing.T, b []byte) []byte // makes the changed file sound; nil: it is
	open   string                              // what of evil is opened; "" = the directory
	// of opening and reading it, or of verifying; "" = the name is not followed, and nothing need be said
	says string
}

const redPart = "part-00001.red"

// waysOut are the formats whose metadata has names of files, each with each of these names.
var waysOut = []wayOut{
	{format: "carbon", make: carbonSample("managed_gsort"), in: "Metadata/segments/*", old: "/Fact",
		new: "/../victim/Fact", says: "is outside of the table"},
	{format: "carbon", make: carbonSample("managed_del"), in: "Metadata/tableupdatestatus-*",
		old: `"segmentName":"1"`, new: `"segmentName":"../../victim/Fact/Part0/Segment_0"`,
		says: "the table has no segment"},
	{format: "carbon", make: carbonSample("managed_del"), in: "Metadata/tableupdatestatus-*",
		old: `"blockName":"part`, new: `"blockName":"../../../../victim/Fact/Part0/Segment_0/part`,
		says: "tableupdatestatus"},
	{format: "carbon", make: carbonSample("managed_del"), in: "Metadata/tablestatus", old: `"tableupdatestatus-`,
		new: `"../../victim/Metadata/tableupdatestatus-`, says: "tablestatus"},
	{format: "carbon", make: carbonSample("managed_del"), in: "Metadata/tablestatus", old: `"segmentFile":"`,
		new: `"segmentFile":"../../../victim/Metadata/segments/`, says: "tablestatus"},
	{format: "carbon", make: carbonSample("managed_del"), in: "Metadata/tablestatus", old: `"loadName":"1"`,
		new: `"loadName":"../../../../victim/Fact/Part0/Segment_1"`, says: "tablestatus"},
	{format: "carbon", make: carbonSample("managed_del"), in: "Metadata/segments/*", old: `"mergeFileName":"`,
		new: `"mergeFileName":"../../../../victim/Fact/Part0/Segment_0/`, says: "segments"},
	{format: "carbon", make: carbonSample("managed_del"), in: "Fact/Part0/Segment_2/*.carbonindexmerge",
		old: "part-0-0_batchno0-0-2-1795249942096.snappy.carbondata",
		new: "../../../../victim/Fact/Part0/Se/nt.snappy.carbondata", says: "index"},
	{format: "cfile", make: converted("cfile"), in: "table.json", old: `"b.cfile"`, new: `"../victim/b.cfile"`,
		says: "table.json"},
	{format: "cfile", make: converted("cfile"), in: "table.json", old: `"b.cfile"`,
		new: `"sub/../../victim/b.cfile"`, says: "table.json"},
	{format: "redfile", make: converted("redfile", "split=row-group", "row-group-rows=2", "crc=false"),
		in: "_metadata.red", old: redPart, new: "../victim/1.red"[:len(redPart)], says: "leads out of the directory"},
	{format: "redfile", make: converted("redfile", "split=row-group", "row-group-rows=2", "crc=false"),
		in: "_metadata.red", old: redPart, new: "/tmp/stoa/p.red"[:len(redPart)], says: "leads out of the directory"},
	{format: "parquet", make: parquetIn("_metadata"), in: "_metadata", fix: elsewhere("../victim/_metadata"),
		open: "_metadata", says: `the data are in another file, "../victim/_metadata"`},
	{format: "parquet", make: parquetIn("a.parquet"), in: "a.parquet", fix: elsewhere("../victim/a.parquet"),
		says: `the data are in another file, "../victim/a.parquet"`},
	{format: "kudu", make: kuduSample, in: "wal/tablet-meta/*", old: "278202899f1b42a1ad91c6f94fc4d476",
		new: "../../../../../victim/wal/tablet", fix: containerSums, says: "tablet"},
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

// converted makes a directory of another format's files.
func converted(to string, opts ...string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		args := []string{"convert", "-", "--from", "csv", "-q", "--to", to, "-o", dir + "/"}
		for _, o := range opts {
			args = append(args, "--opt", o)
		}
		if st := run(context.Background(), args, strings.NewReader(wayOutRows), io.Discard, os.Stderr); st != 0 {
			t.Fatal("no table")
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
			t.Fatal("no table")
		}
	}
}

// elsewhere puts file_path, field 1, in front of file_offset, field 2, in the only ColumnChunk of a Parquet file.
func elsewhere(name string) func(*testing.T, []byte) []byte {
	return func(t *testing.T, b []byte) []byte {
		b = bytes.ReplaceAll(b, []byte("stoa.footer"), []byte("else.footer")) // the checksum that it would not fit
		file := filepath.Join(t.TempDir(), "f.parquet")
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
		for n, err := range stoa.Describe(context.Background(), file,
			stoa.DescribeOptions{OpenOptions: stoa.OpenOptions{Formats: catalogue.Formats()}}) {
			if err != nil {
				t.Fatal(err)
			}
			// an i64 whose number is two, or one, greater than that of the field before
			const second, behind = 0x26, 0x16
			if at := n.At.Off; n.Name == "file_offset" && b[at] == second {
				field := append([]byte{0x18, byte(len(name))}, name...)
				out := append(append(bytes.Clone(b[:at]), field...), b[at:]...)
				out[int(at)+len(field)] = behind
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

// pathSet has the path set of a data directory name the victim, in the last 32 bytes of hexadecimal digits.
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
	t.Fatal("no uuid")
	return nil
}

// watched is the local files, with the names of all that was opened or listed.
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

// TestHostilePaths: names in metadata that lead out of a table's directory are not followed, by no verb, and
// told with their place.
func TestHostilePaths(t *testing.T) {
	for _, c := range waysOut {
		name := c.format + " " + c.in + " " + c.new
		dir := t.TempDir()
		evil := filepath.Join(dir, "evil")
		c.make(t, filepath.Join(dir, "victim"))
		c.make(t, evil)
		spoil(t, evil, c)
		uri := filepath.Join(evil, c.open)
		var names []string
		o := stoa.OpenOptions{Formats: catalogue.Formats(), Tree: watched{names: &names}}
		said := readEverything(t, name, uri, o)
		for _, n := range names {
			real, err := filepath.EvalSymlinks(n)
			if err != nil {
				real, err = filepath.Abs(n)
			}
			if err != nil || strings.HasPrefix(real, filepath.Join(dir, "victim")) ||
				strings.HasPrefix(real, "/tmp/stoa") {
				t.Errorf("%s: %s was opened", name, n)
			}
		}
		if len(names) == 0 {
			t.Errorf("%s: nothing was opened", name)
		}
		if c.says != "" && !strings.Contains(said, c.says) {
			t.Errorf("%s: nobody says %q:\n%s", name, c.says, said)
		}
	}
}

// spoil changes the names in the files of evil.
func spoil(t *testing.T, evil string, c wayOut) {
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
		t.Fatalf("%s: there is no %q", c.in, c.old)
	}
}

// readEverything opens, reads, recovers, verifies, lists and describes what lies at a place, and gives what is said.
func readEverything(t *testing.T, name, uri string, o stoa.OpenOptions) string {
	ctx := context.Background()
	var said strings.Builder
	say := func(err error) {
		if err == nil {
			return
		}
		if errors.Is(err, fault.Bug) {
			t.Errorf("%s: %v", name, err)
		}
		said.WriteString(err.Error() + "\n")
	}
	tell := func(f region.Finding) { said.WriteString(f.At.String() + " " + f.Path + " " + f.Message + "\n") }
	for _, o.Recover = range []bool{false, true} {
		tab, err := stoa.Open(ctx, uri, o)
		if say(err); err != nil {
			continue
		}
		for _, policy := range []stoa.Damaged{stoa.Fail, stoa.NullCells} {
			for _, err := range tab.Scan(ctx,
				stoa.ScanSpec{Damaged: policy, Lost: func(l region.Loss) { say(l.Err) }}) {
				say(err)
			}
		}
		for _, f := range tab.Findings() {
			tell(f)
		}
		say(tab.Close())
	}
	for f, err := range stoa.Verify(ctx, uri, o) {
		if say(err); err == nil {
			tell(f)
		}
	}
	for _, err := range stoa.Describe(ctx, uri, stoa.DescribeOptions{OpenOptions: o}) {
		say(err)
	}
	return said.String()
}

// TestHostileSplits: a split that names a part elsewhere than in its source is refused, and nothing of it is read.
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
		split, _, _ := strings.Cut(out.String(), "\n")
		head, pieces, ok := strings.Cut(split, `"pieces":`)
		bad := strings.ReplaceAll(pieces, c.old, c.new)
		if !ok || bad == pieces {
			t.Fatalf("%s: there is no %q in %s", c.format, c.old, pieces)
		}
		out.Reset()
		errs.Reset()
		st := run(context.Background(), []string{"scan", "--split", "-"}, strings.NewReader(head+`"pieces":`+bad),
			&out, &errs)
		// What comes is nothing but the torn message with which a stream is given up: 8 of 64 bytes.
		torn := "\xff\xff\xff\xff\x40" + strings.Repeat("\x00", 11)
		if st == 0 || out.Len() > 0 && out.String() != torn || !strings.Contains(errs.String(), "not in this place") {
			t.Errorf("%s, %s: status %d, %d bytes of rows: %s", c.format, c.new, st, out.Len(), &errs)
		}
	}
}
