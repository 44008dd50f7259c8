package kudu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/fault"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/pb"
	"stoa/region"
	"stoa/store"
)

// record is a BlockRecordPB.
func record(id uint64, op uint64, off, n int64) []byte {
	b := pb.AppendUint(pb.AppendMessage(nil, 1, pb.AppendFixed64(nil, 1, id)), 2, op)
	b = pb.AppendUint(b, 3, 1)
	if op == fs.RecordCreate {
		b = pb.AppendInt(pb.AppendInt(b, 4, off), 5, n)
	}
	return b
}

// oneContainer returns a server with one container; nil omits the file.
func oneContainer(meta, data []byte) *store.Memory {
	set := pb.AppendString(pb.AppendString(nil, 1, "u1"), 2, "u1")
	files := map[string][]byte{
		"s/instance": container(2, "kudu.InstanceMetadataPB",
			pb.AppendString(pb.AppendString(nil, 1, "server"), 2, "now")),
		"s/data/block_manager_instance": container(2, "kudu.DirInstanceMetadataPB",
			pb.AppendUint(pb.AppendString(pb.AppendMessage(nil, 1, set), 2, "log"), 3, 4096)),
	}
	if meta != nil {
		files["s/data/0123456789abcdef0123456789abcdef.metadata"] = meta
	}
	if data != nil {
		files["s/data/0123456789abcdef0123456789abcdef.data"] = data
	}
	return store.NewMemory(files)
}

func openTree(t testing.TB, tree store.Tree) *fs.FS {
	f, err := fs.OpenFS(context.Background(), tree, fs.Layout{MetaDir: "s", DataDirs: []string{"s"}}, fs.FSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func ids(xs []fs.Extent) string {
	var out []string
	for _, x := range xs {
		out = append(out, fmt.Sprintf("%d@%d+%d", x.ID, x.Off, x.Len))
	}
	return strings.Join(out, " ")
}

func TestContainer(t *testing.T) {
	const typ = "kudu.BlockRecordPB"
	data := bytes.Repeat([]byte{1}, 3*4096)
	healthy := [][]byte{record(1, fs.RecordCreate, 0, 100), record(2, fs.RecordCreate, 4096, 4096),
		record(3, fs.RecordCreate, 8192, 0), record(1, fs.RecordDelete, 0, 0), record(4, fs.RecordCreate, 8192, 4096)}
	with := func(more ...[]byte) []byte { return container(2, typ, append(slices.Clone(healthy), more...)...) }
	meta := with()
	flipped := bytes.Clone(meta)
	flipped[len(flipped)-6] ^= 1
	for _, x := range []struct {
		name             string
		meta, data       []byte
		live, dead, lost string
		codes            string
		torn, unknown    bool
	}{
		{"healthy", meta, data, "2@4096+4096 3@8192+0 4@8192+4096", "1@0+100", "", "", false, false},
		{"version 1", container(1, typ, healthy...), data, "2@4096+4096 3@8192+0 4@8192+4096", "1@0+100", "", "",
			false, false},
		{"created again", with(record(1, fs.RecordCreate, 0, 50)), data, "1@0+50 2@4096+4096 3@8192+0 4@8192+4096",
			"1@0+100", "", "", false, false},
		{"torn", meta[:len(meta)-3], data, "2@4096+4096 3@8192+0", "1@0+100", "", "kudu.container.torn", true, false},
		{"trailing zeros", append(bytes.Clone(meta), make([]byte, 100)...), data, "2@4096+4096 3@8192+0 4@8192+4096",
			"1@0+100", "", "kudu.container.torn", true, false},
		{"trailing garbage", append(bytes.Clone(meta), "garbage, and more of it"...), data,
			"2@4096+4096 3@8192+0 4@8192+4096", "1@0+100", "", "kudu.container.record", false, true},
		{"a flipped record", flipped, data, "2@4096+4096 3@8192+0", "1@0+100", "", "kudu.container.record", false,
			true},
		{"data cut", meta, data[:8192+100], "2@4096+4096 3@8192+0", "1@0+100", "4@8192+4096",
			"kudu.container.truncated", false, false},
		{"data gone", meta, nil, "3@8192+0", "1@0+100", "2@4096+4096 4@8192+4096", "kudu.container.missing", false,
			false},
		{"metadata gone", nil, data, "", "", "", "kudu.container.missing", false, true},
		{"twice", with(record(2, fs.RecordCreate, 0, 10)), data, "2@4096+4096 3@8192+0 4@8192+4096", "1@0+100", "",
			"kudu.container.record", false, true},
		{"deleted without having been created", with(record(9, fs.RecordDelete, 0, 10)), data,
			"2@4096+4096 3@8192+0 4@8192+4096", "1@0+100", "", "kudu.container.record", false, true},
		{"unknown operation", with(record(9, 7, 0, 10)), data, "2@4096+4096 3@8192+0 4@8192+4096", "1@0+100", "",
			"kudu.container.record", false, true},
		{"negative", with(record(9, fs.RecordCreate, -1, 10)), data, "2@4096+4096 3@8192+0 4@8192+4096", "1@0+100",
			"", "kudu.container.record", false, true},
		{"too large", with(record(9, fs.RecordCreate, 1<<62, 1<<62)), data, "2@4096+4096 3@8192+0 4@8192+4096",
			"1@0+100", "", "kudu.container.record", false, true},
		{"past the end", with(record(9, fs.RecordCreate, 1<<62, 1)), data, "2@4096+4096 3@8192+0 4@8192+4096",
			"1@0+100", "9@4611686018427387904+1", "kudu.container.truncated", false, false},
		{"overlap", with(record(9, fs.RecordCreate, 5000, 10)), data, "2@4096+4096 9@5000+10 3@8192+0 4@8192+4096",
			"1@0+100", "", "kudu.container.overlap", false, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			f := openTree(t, oneContainer(x.meta, x.data))
			c := f.Containers[0]
			if ids(c.Live) != x.live || ids(c.Dead) != x.dead || ids(c.Lost) != x.lost {
				t.Errorf("live %s; dead %s; lost %s", ids(c.Live), ids(c.Dead), ids(c.Lost))
			}
			if codesIn(f) != x.codes || c.Torn != x.torn || c.Unknown != x.unknown ||
				(c.Err != nil) != (x.codes != "" && !x.torn && x.name != "overlap") {
				t.Errorf("findings %q, torn %t, unknown %t, %v", codesIn(f), c.Torn, c.Unknown, c.Err)
			}
			for _, y := range f.Findings {
				if y.At.Object == "" {
					t.Errorf("%s has no file", y.Code)
				}
			}
			for _, y := range c.Lost {
				if p, err := placeOf(f, y.ID); !errors.Is(err, fault.Corrupt) || p.At.Off != y.Off {
					t.Errorf("lost block %d: %v, %v", y.ID, p, err)
				}
			}
			if p, err := placeOf(f, 77); !errors.Is(err, fault.Corrupt) || p.At.Object != "" {
				t.Errorf("%v, %v", p, err)
			}
			checkSections(t, f, c)
		})
	}
	for _, empty := range []struct{ meta, data []byte }{{[]byte{}, []byte{}}, {[]byte("kudu"), nil},
		{[]byte(pbc.Magic + "\x02\x00\x00\x00"), []byte{}}} {
		f := openTree(t, oneContainer(empty.meta, empty.data))
		if codesIn(f) != "kudu.container.incomplete" {
			t.Errorf("%q: %s", empty.meta, codesIn(f))
		}
	}
}

// checkSections fails unless every byte of the data file belongs to exactly one section.
func checkSections(t *testing.T, f *fs.FS, c *fs.Container) {
	t.Helper()
	sections, err := f.Sections(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	var cover region.Coverage
	var pos int64
	for _, s := range sections {
		cover.Add(region.Node{Kind: s.Kind, At: s.At, Inner: -1})
		if s.At.Off != pos || s.At.Len <= 0 {
			t.Errorf("section %v after %d", s, pos)
		}
		pos = s.At.End()
	}
	if c.Data != "" && pos != c.Size {
		t.Errorf("sections end at %d of %d", pos, c.Size)
	}
}

// TestCorpusSections: the sections of all real containers are blocks, holes and padding, and nothing else.
func TestCorpusSections(t *testing.T) {
	dirs := []string{"testdata/log"}
	if d := corpusEnv(); d != "" {
		dirs = append(dirs, filepath.Join(d, "fs_log"))
	}
	for _, dir := range dirs {
		f := openOne(t, store.Local{}, dir)
		count := map[region.Kind]int{}
		for _, c := range f.Containers {
			checkSections(t, f, c)
			sections, err := f.Sections(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range sections {
				if count[s.Kind]++; s.Kind == region.Gap {
					t.Errorf("%v", s)
				}
			}
		}
		t.Log(dir, count)
		if dir != "testdata/log" && (count[region.Struct] != 613 || count[region.Dead] != 88) {
			t.Errorf("%v", count)
		}
	}
}

// TestContainerFlips: each flipped bit in a container's metadata is noticed, and blocks that can still be read are
// right.
func TestContainerFlips(t *testing.T) {
	const name = "srv/data/data/c61469032c9c4d08b0339d754d9f5944.metadata"
	whole := openOne(t, edit(t, "log", func(map[string][]byte) {}), "srv")
	right := map[uint64]fs.Place{}
	for p := range whole.AllBlocks(context.Background()) {
		right[p.ID] = p
	}
	files := loadTree(t, "testdata/log", "srv")
	meta := files[name]
	l := whole.Layout
	for i := range meta {
		if i > 40 && i < len(meta)-320 && i%16 != 0 {
			continue // the descriptors
		}
		for bit := range 8 {
			bad := maps.Clone(files)
			bad[name] = bytes.Clone(meta)
			bad[name][i] ^= 1 << bit
			f, err := fs.OpenFS(context.Background(), store.NewMemory(bad), l, fs.FSOptions{})
			if err != nil {
				t.Fatalf("byte %d: %v", i, err)
			}
			if len(f.Findings) == 0 {
				t.Fatalf("byte %d bit %d: not reported", i, bit)
			}
			for p, err := range f.AllBlocks(context.Background()) {
				if w, ok := right[p.ID]; err != nil || ok && p != w || !ok &&
					!f.Containers[f.Blocks[p.ID].Container].Unknown {
					t.Fatalf("byte %d bit %d: block %v, %v", i, bit, p, err)
				}
			}
		}
	}
}

// Without metadata, all blocks of the containers are found.
func TestCarve(t *testing.T) {
	whole := openOne(t, store.Local{}, "testdata/log")
	want := map[string]map[fault.Span]bool{}
	n := 0
	for p := range whole.AllBlocks(context.Background()) {
		at := p.At
		at.Object = "srv/" + strings.TrimPrefix(at.Object, "testdata/log/")
		if want[at.Object] == nil {
			want[at.Object] = map[fault.Span]bool{}
		}
		want[at.Object][at] = true
		n++
	}
	tree := edit(t, "log", func(files map[string][]byte) {
		maps.DeleteFunc(files, func(name string, _ []byte) bool { return strings.HasSuffix(name, ".metadata") })
	})
	f := openOne(t, tree, "srv")
	found, dead := 0, 0
	for _, c := range f.Containers {
		carved, err := f.Carve(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range carved {
			switch {
			case x.Err != nil:
				t.Error(x.Err)
			case want[x.At.Object][x.At]:
				found++
			default:
				dead++
			}
		}
	}
	t.Logf("%d of %d blocks found, and %d deleted ones", found, n, dead)
	if found != n {
		t.Errorf("%d of %d blocks are found", found, n)
	}
	// a truncated container: the last block has no end
	name := "srv/data/data/83c26c7a337241a2a12451ba9b9fdb1c.data"
	tree = edit(t, "log", func(files map[string][]byte) {
		delete(files, strings.TrimSuffix(name, fs.DataSuffix)+fs.MetadataSuffix)
		files[name] = files[name][:len(files[name])-5]
	})
	f = openOne(t, tree, "srv")
	for _, c := range f.Containers {
		if c.Data != name {
			continue
		}
		carved, err := f.Carve(context.Background(), c)
		if err != nil || len(carved) == 0 {
			t.Fatal(carved, err)
		}
		if last := carved[len(carved)-1]; !errors.Is(last.Err, fault.Corrupt) || last.At.End() != c.Size {
			t.Errorf("%+v", last)
		}
	}
}

func FuzzContainer(f *testing.F) {
	f.Add(container(2, "kudu.BlockRecordPB", record(1, fs.RecordCreate, 0, 100), record(1, fs.RecordDelete, 0, 0)),
		[]byte("kuducfl2"))
	b, err := os.ReadFile("testdata/log/data/data/c61469032c9c4d08b0339d754d9f5944.metadata")
	if err != nil {
		f.Fatal(err)
	}
	d, err := os.ReadFile("testdata/log/data/data/c61469032c9c4d08b0339d754d9f5944.data")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, d)
	f.Fuzz(func(t *testing.T, meta, data []byte) {
		dirs := openTree(t, oneContainer(meta, data))
		for _, c := range dirs.Containers {
			checkSections(t, dirs, c)
			if _, err := dirs.Carve(context.Background(), c); err != nil {
				t.Fatal(err)
			}
		}
		for p := range dirs.AllBlocks(context.Background()) {
			if _, err := dirs.OpenBlock(context.Background(), p); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// placeOf finds a block that a tablet without a list of data directories names.
func placeOf(f *fs.FS, id uint64) (fs.Place, error) {
	return f.PlaceOf(context.Background(), &meta.Tablet{}, meta.BlockRef{ID: id})
}
