package kudu

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"stoa/fault"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/store"
)

// corpusDir returns the corpus of real directories; without it the test is skipped.
func corpusDir(t testing.TB) string {
	t.Helper()
	dir := corpusEnv()
	if dir == "" {
		t.Skip("STOA_CORPUS is not set: only the small directories of testdata are tried")
	}
	return dir
}

func corpusEnv() string {
	if dir := os.Getenv("STOA_CORPUS"); dir != "" {
		return filepath.Join(dir, "kudu")
	}
	return ""
}

// manifestBlock is an entry of the corpus's manifest.
type manifestBlock struct {
	File, Sha256, Container, Kind, Table, Tablet, Partition, Column, Run string
	Size                                                                 int64
	RowSet                                                               uint64
	BlockID                                                              uint64            `json:"block_id"`
	ColumnID                                                             string            `json:"column_id"`
	CFile                                                                map[string]string `json:"cfile"`
}

func readManifest(t testing.TB, dir, run string) (out []manifestBlock) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []manifestBlock
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if m.Run == run {
			out = append(out, m)
		}
	}
	return out
}

// openOne opens the one server in dir.
func openOne(t testing.TB, tree store.Tree, dir string) *fs.FS {
	t.Helper()
	ctx := context.Background()
	ls, err := fs.FindServers(ctx, tree, dir, fs.FSOptions{})
	if err != nil || len(ls) != 1 {
		t.Fatalf("%s: %d servers, %v", dir, len(ls), err)
	}
	f, err := fs.OpenFS(ctx, tree, ls[0], fs.FSOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// healthy fails if there are findings.
func healthy(t testing.TB, f *fs.FS) {
	t.Helper()
	for _, x := range f.Findings {
		t.Errorf("finding %s at %s: %s", x.Code, x.At, x.Message)
	}
}

func mustTablets(t testing.TB, f *fs.FS) []*meta.Tablet {
	t.Helper()
	ts, err := f.Tablets(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

// sumOf is the sha256 of a block.
func sumOf(t testing.TB, f *fs.FS, p fs.Place) string {
	t.Helper()
	src, err := f.OpenBlock(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(store.ReaderAt(context.Background(), src), 0, src.Size())); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// slot identifies a block by its role in its table, which is the same in all runs of the generator.
type slot struct {
	Table, Partition, Kind, Column string
	RowSet                         uint64
	N                              int
}

// slots are all blocks that the tablets name, by role.
func slots(t testing.TB, f *fs.FS, tablets []*meta.Tablet) map[slot]fs.Place {
	t.Helper()
	out := map[slot]fs.Place{}
	for _, tb := range tablets {
		for i := range tb.RowSets {
			rs := &tb.RowSets[i]
			n := map[string]int{}
			for _, b := range rs.Blocks() {
				p, err := f.PlaceOf(context.Background(), tb, b.BlockRef)
				if err != nil {
					t.Fatal(err)
				}
				s := slot{Table: tb.Table, Partition: tb.Partitioning.Text(&tb.Schema, &tb.Partition), Kind: b.Kind,
					RowSet: rs.ID}
				if b.Column >= 0 {
					s.Column = tb.Schema.NameOf(b.Column)
				}
				s.N = n[s.Kind+s.Column]
				n[s.Kind+s.Column]++
				if _, twice := out[s]; twice {
					t.Fatalf("two blocks are %v", s)
				}
				out[s] = p
			}
		}
	}
	return out
}

// TestCorpusFileBlocks: every block of the file block manager has the location and the content stated in the manifest.
func TestCorpusFileBlocks(t *testing.T) {
	dir := corpusDir(t)
	root := filepath.Join(dir, "fs_file")
	f := openOne(t, store.Local{}, root)
	if f.BlockManager != "file" || len(f.DataDirs) != 1 {
		t.Fatalf("%q, %d data directories", f.BlockManager, len(f.DataDirs))
	}
	tablets := mustTablets(t, f)
	byID := map[uint64]slot{}
	for s, p := range slots(t, f, tablets) {
		byID[p.ID] = s
	}
	blocks := readManifest(t, dir, "file_ck")
	if len(blocks) != 613 || len(byID) != 613 {
		t.Fatalf("%d blocks in the manifest, %d named by superblocks", len(blocks), len(byID))
	}
	for _, m := range blocks {
		p, err := placeOf(f, m.BlockID)
		if err != nil {
			t.Error(err)
			continue
		}
		if want := filepath.Join(root, m.Container); p.At != (fault.Span{Object: want, Len: m.Size}) {
			t.Errorf("block %d: %s, want %s", m.BlockID, p.At, want)
		}
		if sum := sumOf(t, f, p); sum != m.Sha256 {
			t.Errorf("block %d: wrong checksum", m.BlockID)
		}
		s := byID[m.BlockID]
		if s.Table != m.Table || s.Kind != m.Kind || s.Column != m.Column || s.RowSet != m.RowSet ||
			s.Partition != m.Partition {
			t.Errorf("block %d is %v, want %s %s %s %q of rowset %d", m.BlockID, s, m.Table, m.Partition, m.Kind,
				m.Column, m.RowSet)
		}
	}
	unnamed, err := f.Unnamed(context.Background(), tablets)
	if err != nil || len(unnamed) != 0 {
		t.Errorf("%d unnamed blocks, %v", len(unnamed), err)
	}
	healthy(t, f)
}

// The log block manager's run has the same tables: its column, bloom and ad-hoc index blocks have the same bytes, in
// containers.
func TestCorpusLogBlocks(t *testing.T) {
	dir := corpusDir(t)
	f := openOne(t, store.Local{}, filepath.Join(dir, "fs_log"))
	if f.BlockManager != "log" || len(f.Containers) != 332 {
		t.Fatalf("%q, %d containers", f.BlockManager, len(f.Containers))
	}
	tablets := mustTablets(t, f)
	got := slots(t, f, tablets)
	want := map[slot]string{}
	file := openOne(t, store.Local{}, filepath.Join(dir, "fs_file"))
	for s, p := range slots(t, file, mustTablets(t, file)) {
		want[s] = sumOf(t, file, p)
	}
	if len(got) != 613 || len(want) != 613 {
		t.Fatalf("%d blocks, the other run has %d", len(got), len(want))
	}
	same, other := 0, map[string]int{}
	for s, p := range got {
		if p.At.Off%4096 != 0 {
			t.Errorf("%v: %s is not aligned", s, p.At)
		}
		w, ok := want[s]
		if !ok {
			t.Errorf("%v is not in the other run", s)
			continue
		}
		if sumOf(t, f, p) == w {
			same++
		} else {
			other[s.Kind]++
		}
	}
	t.Logf("%d blocks are the same bytes as in the other run; not the same: %v", same, other)
	if other["column"] > 0 || other["bloom"] > 0 || other["adhoc-index"] > 0 {
		t.Errorf("blocks without timestamps differ: %v", other)
	}
	unnamed, err := f.Unnamed(context.Background(), tablets)
	if err != nil || len(unnamed) != 0 {
		t.Errorf("%d unnamed blocks, %v", len(unnamed), err)
	}
	healthy(t, f)
}

func dump(v any) string {
	b, _ := json.MarshalIndent(v, "", " ")
	return string(b)
}

// loadTree reads a directory into memory; names begin with prefix.
func loadTree(t testing.TB, dir, prefix string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		out[path.Join(prefix, filepath.ToSlash(rel))], err = os.ReadFile(p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// unpack reads a .tar.zst into memory.
func unpack(t testing.TB, name string) map[string][]byte {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeGNUSparse {
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			out[path.Clean(h.Name)] = b
		}
	}
}

// codesIn returns the codes of f's findings, sorted and without duplicates.
func codesIn(f *fs.FS) string {
	var out []string
	for _, x := range f.Findings {
		out = append(out, x.Code)
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), " ")
}

// The directories in testdata: compared with the output of Kudu's tools, and by checksums of blocks.
func TestGoldenLog(t *testing.T) {
	f := openOne(t, store.Local{}, "testdata/log")
	if f.BlockManager != "log" || f.UUID != "bf8c3a5072f14eda900a745e7a4d880c" || len(f.Containers) != 10 ||
		len(f.Users) != 0 {
		t.Fatalf("%s %s, %d containers, users %v", f.BlockManager, f.UUID, len(f.Containers), f.Users)
	}
	tablets := mustTablets(t, f)
	var text []string
	for _, x := range tablets {
		text = append(text, fmt.Sprint(x.State, " ", x.Partitioning.Text(&x.Schema, &x.Partition), " ", x.Rows(),
			" ", x.Consensus != nil))
	}
	want := []string{
		"READY HASH (key) PARTITION 0, RANGE (key) PARTITION UNBOUNDED 138 true",
		"TOMBSTONED HASH (key) PARTITION 1, RANGE (key) PARTITION UNBOUNDED 0 true",
		`READY HASH (id, name) PARTITION 0, RANGE (name) PARTITION "q" <= VALUES < "z" 0 false`,
		`READY HASH (id) PARTITION 1, RANGE (name) PARTITION VALUES < "g" 1 false`,
	}
	if !slices.Equal(text, want) {
		t.Errorf("got  %s\nwant %s", dump(text), dump(want))
	}
	if o := tablets[1].TombstonedAt; o == nil || o.Index == 0 {
		t.Errorf("tombstoned at %v", o)
	}
	if e := tablets[2].Extra; e.HistoryMaxAge != 3600 {
		t.Errorf("%+v", e)
	}
	tables, err := f.Tables(context.Background(), tablets)
	if err != nil || len(tables) != 2 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	gaps := func(gs []meta.Gap) (out []string) {
		for _, g := range gs {
			out = append(out, g.Text)
		}
		return out
	}
	if got := gaps(tables[0].Missing); !slices.Equal(got,
		[]string{"HASH (key) PARTITION 1, RANGE (key) PARTITION UNBOUNDED"}) {
		t.Errorf("missing %q", got)
	}
	if got := gaps(tables[1].Missing); !slices.Equal(got, []string{
		`HASH (id) PARTITION 0, RANGE (name) PARTITION VALUES < "g"`,
		`HASH (id, name) PARTITION 1, RANGE (name) PARTITION "q" <= VALUES < "z"`,
		`HASH (id, name) PARTITION 2, RANGE (name) PARTITION "q" <= VALUES < "z"`}) {
		t.Errorf("missing %q", got)
	}
	if got := gaps(tables[1].Uncovered); !slices.Equal(got,
		[]string{`RANGE (name) PARTITION "g" <= VALUES < "q"`, `RANGE (name) PARTITION "z" <= VALUES`}) {
		t.Errorf("uncovered %q", got)
	}
	if tables[0].Rows != 138 || tables[0].Lost != 0 || tables[1].Rows != 1 {
		t.Errorf("%+v", tables)
	}
	// the list of blocks, as Kudu prints it
	var judged []map[string]string
	b, err := os.ReadFile("testdata/log/fs_list.json")
	if err == nil {
		err = json.Unmarshal(b, &judged)
	}
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]map[string]string{}
	for _, j := range judged {
		byID[j["block-id"]] = j
	}
	n := 0
	err = f.ListBlocks(context.Background(), tablets, true, func(l fs.BlockLine) bool {
		got := map[string]string{}
		for i, k := range fs.ListFields {
			got[k] = l.Values[i]
		}
		if w := byID[got["block-id"]]; l.Err != nil || !maps.Equal(got, w) {
			t.Errorf("%v\n%s\nwant %s", l.Err, dump(got), dump(w))
		}
		n++
		return true
	})
	if err != nil || n != len(judged) {
		t.Errorf("%d lines, Kudu has %d; %v", n, len(judged), err)
	}
	// the schema that was given to `kudu table create`
	sc, err := tablets[2].Schema.Arrow()
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, x := range sc.Fields() {
		fields = append(fields, fmt.Sprintf("%s %s %t %v", x.Name, x.Type, x.Nullable, x.Metadata))
	}
	wantFields := []string{
		`id int64 false ["stoa.type": "int64", "stoa.encoding": "auto", "stoa.compression": "default", ` +
			`"stoa.column_id": "0", "stoa.key": "1"]`,
		`name utf8 false ["stoa.type": "string", "stoa.encoding": "prefix", "stoa.compression": "default", ` +
			`"stoa.column_id": "1", "stoa.key": "2"]`,
		`d decimal(9, 2) true ["stoa.type": "decimal32", "stoa.encoding": "auto", "stoa.compression": "default", ` +
			`"stoa.column_id": "2"]`,
		`v utf8 true ["stoa.type": "varchar", "stoa.encoding": "auto", "stoa.compression": "default", ` +
			`"stoa.column_id": "3", "stoa.length": "20", "stoa.default": "x", "stoa.comment": "a comment"]`,
		`b bool false ["stoa.type": "bool", "stoa.encoding": "auto", "stoa.compression": "default", ` +
			`"stoa.column_id": "4", "stoa.default": "true"]`,
		`extra int32 true ["stoa.type": "int32", "stoa.encoding": "auto", "stoa.compression": "default", ` +
			`"stoa.column_id": "5", "stoa.default": "7"]`,
	}
	for i := range wantFields {
		if i >= len(fields) || fields[i] != wantFields[i] {
			t.Errorf("field %d:\ngot  %s\nwant %s", i, fields[min(i, len(fields)-1)], wantFields[i])
		}
	}
	unnamed, err := f.Unnamed(context.Background(), tablets)
	if err != nil || len(unnamed) != 0 {
		t.Errorf("unnamed %v, %v", unnamed, err)
	}
	healthy(t, f)
}

func TestGoldenFile(t *testing.T) {
	f := openOne(t, store.Local{}, "testdata/file")
	b, err := os.ReadFile("testdata/file/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(b)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		id, err := strconv.ParseUint(path.Base(name), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		p, err := placeOf(f, id)
		if err != nil || p.At.Object != "testdata/file/"+name || sumOf(t, f, p) != sum {
			t.Errorf("%d: %v, %v", id, p, err)
		}
		n++
	}
	tablets := mustTablets(t, f)
	if len(tablets) != 1 || len(tablets[0].RowSets) != 1 || len(tablets[0].RowSets[0].Blocks()) != n ||
		tablets[0].Schema.Unique() || tablets[0].Rows() != 300 {
		t.Errorf("%d blocks, %s", n, dump(tablets))
	}
	all := 0
	for _, err := range f.AllBlocks(context.Background()) {
		if err != nil {
			t.Error(err)
		}
		all++
	}
	if all != n {
		t.Errorf("%d block files, %d checksums", all, n)
	}
	healthy(t, f)
}

// Two data directories, of which one is then removed.
func TestCorpusTwoDataDirs(t *testing.T) {
	files := unpack(t, filepath.Join(corpusDir(t), "special", "md.tar.zst"))
	f := openOne(t, store.NewMemory(files), "")
	if f.BlockManager != "file" || len(f.DataDirs) != 2 || f.DataDirs[0].Root != "tserver/d2" ||
		f.DataDirs[1].Index != 1 {
		t.Fatalf("%s", dump(f.DataDirs))
	}
	tablets := mustTablets(t, f)
	count := func(f *fs.FS, tablets []*meta.Tablet) (in [2]int, lost int) {
		err := f.ListBlocks(context.Background(), tablets, true, func(l fs.BlockLine) bool {
			if l.Err != nil {
				if lost++; !errors.Is(l.Err, fault.Corrupt) || pbc.SpanOf(l.Err).Object == "" {
					t.Error(l.Err)
				}
				return true
			}
			if in[l.Place.Dir]++; l.Place.Dir != int(l.Block.ID>>48) {
				t.Errorf("block %d is in directory %d", l.Block.ID, l.Place.Dir)
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		return in, lost
	}
	in, lost := count(f, tablets)
	if lost != 0 || in != [2]int{21, 19} {
		t.Errorf("%v blocks, %d lost", in, lost)
	}
	var rows int64
	for _, x := range tablets {
		if rows += x.Rows(); len(x.DataDirs) != 2 && len(x.DataDirs) != 1 {
			t.Errorf("data directories %q", x.DataDirs)
		}
	}
	if rows != 2000 || len(tablets) != 8 {
		t.Errorf("%d rows in %d tablets", rows, len(tablets))
	}
	healthy(t, f)

	maps.DeleteFunc(files, func(name string, _ []byte) bool { return strings.HasPrefix(name, "tserver/d1/") })
	f = openOne(t, store.NewMemory(files), "")
	again, lost := count(f, mustTablets(t, f))
	if again[0] != in[0] || lost != in[1] || codesIn(f) != "kudu.datadir.missing" {
		t.Errorf("%v blocks, %d lost; %s", again, lost, codesIn(f))
	}
}

func TestCorpusEncrypted(t *testing.T) {
	tree := store.NewMemory(unpack(t, filepath.Join(corpusDir(t), "special", "enc.tar.zst")))
	ls, err := fs.FindServers(context.Background(), tree, "", fs.FSOptions{})
	if err != nil || len(ls) != 1 {
		t.Fatalf("%v, %v", ls, err)
	}
	f, err := fs.OpenFS(context.Background(), tree, ls[0], fs.FSOptions{})
	if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "encrypted") || !f.Encrypted ||
		f.UUID == "" {
		t.Errorf("%v, encrypted %t", err, f.Encrypted)
	}
	_, err = meta.ReadSuperblock(context.Background(), tree, firstUnder(tree, ls[0].MetaDir+"/tablet-meta/"),
		pbc.Options{})
	if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "encrypted") {
		t.Error(err)
	}
}

func firstUnder(tree *store.Memory, prefix string) string {
	for _, n := range tree.Names() {
		if strings.HasPrefix(n, prefix) {
			return n
		}
	}
	return ""
}

// edit returns testdata/log or testdata/file, at srv/, after a change.
func edit(t testing.TB, which string, change func(files map[string][]byte)) *store.Memory {
	files := loadTree(t, "testdata/"+which, "srv")
	change(files)
	return store.NewMemory(files)
}

// Parts of the layout are missing or damaged; everything else is found.
func TestLayoutDamage(t *testing.T) {
	remove := func(names ...string) func(map[string][]byte) {
		return func(files map[string][]byte) {
			for _, n := range names {
				if files["srv/"+n] == nil {
					t.Fatalf("there is no %s", n)
				}
				delete(files, "srv/"+n)
			}
		}
	}
	for _, x := range []struct {
		which, name string
		change      func(map[string][]byte)
		codes       string
	}{
		{"log", "undamaged", remove(), ""},
		{"log", "no instance in wal", remove("wal/instance"), "kudu.instance.missing"},
		{"log", "no instance in data", remove("data/instance"), "kudu.instance.missing"},
		{"log", "no instances", remove("data/instance", "wal/instance"), "kudu.instance.missing"},
		{"log", "no block manager instance", remove("data/data/block_manager_instance"), "kudu.datadir.damaged"},
		{"log", "no instances and no block manager instance",
			remove("data/data/block_manager_instance", "data/instance", "wal/instance"),
			"kudu.datadir.damaged kudu.instance.missing"},
		{"file", "no block manager instance", remove("data/data/block_manager_instance"), "kudu.datadir.damaged"},
		{"file", "no instances and no block manager instance",
			remove("data/data/block_manager_instance", "data/instance", "wal/instance"),
			"kudu.datadir.damaged kudu.instance.missing"},
		{"log", "damaged instance", func(f map[string][]byte) { f["srv/wal/instance"][200] ^= 1 },
			"kudu.instance.damaged"},
		{"log", "cut instance", func(f map[string][]byte) { f["srv/wal/instance"] = f["srv/wal/instance"][:900] },
			"kudu.instance.damaged"},
		{"log", "damaged block manager instance",
			func(f map[string][]byte) { b := f["srv/data/data/block_manager_instance"]; b[len(b)-9] ^= 1 },
			"kudu.datadir.damaged"},
	} {
		t.Run(x.which+" "+x.name, func(t *testing.T) {
			f := openOne(t, edit(t, x.which, x.change), "srv")
			tablets := mustTablets(t, f)
			blocks, lost := 0, 0
			if err := f.ListBlocks(context.Background(), tablets, true, func(l fs.BlockLine) bool {
				if blocks++; l.Err != nil {
					lost++
				}
				return true
			}); err != nil {
				t.Fatal(err)
			}
			want := map[string]int{"log": 14, "file": 6}[x.which]
			if blocks != want || lost > 0 {
				t.Errorf("%d blocks, %d lost", blocks, lost)
			}
			if codesIn(f) != x.codes {
				t.Errorf("findings %q, want %q", codesIn(f), x.codes)
			}
		})
	}
}

// Directories of other programs are ignored, and several servers are distinguished.
func TestFindServers(t *testing.T) {
	ctx := context.Background()
	files := loadTree(t, "testdata/log", "backup/data/a")
	for n, b := range loadTree(t, "testdata/file", "backup/data/b") {
		files[n] = b
	}
	for n, b := range loadTree(t, "testdata/log", "backup/data/copy-of-a") {
		files[n] = b
	}
	files["backup/data/photos/instance"] = []byte("something else")
	files["backup/data/photos/a.jpg"] = []byte("x")
	ls, err := fs.FindServers(ctx, store.NewMemory(files), "backup", fs.FSOptions{})
	want := []fs.Layout{
		{MetaDir: "backup/data/a/wal", DataDirs: []string{"backup/data/a/data"}},
		{MetaDir: "backup/data/b/wal", DataDirs: []string{"backup/data/b/data"}},
		{MetaDir: "backup/data/copy-of-a/wal", DataDirs: []string{"backup/data/copy-of-a/data"}},
	}
	if err != nil || dump(ls) != dump(want) {
		t.Errorf("%s, %v", dump(ls), err)
	}
	for _, dir := range []string{"backup/data/a/wal", "backup/data/a/data", "backup/data/a/data/data"} {
		if ls, err := fs.FindServers(ctx, store.NewMemory(files), dir, fs.FSOptions{}); err != nil || len(ls) != 1 {
			t.Errorf("%s: %v, %v", dir, ls, err)
		}
	}
	if ls, err := fs.FindServers(ctx, store.NewMemory(files), "backup/data/photos", fs.FSOptions{}); err != nil ||
		len(ls) > 0 {
		// the name alone proves nothing, not even at the top
		t.Errorf("%v, %v", ls, err)
	}
	// only the metadata, or only the blocks
	f := openOne(t, store.NewMemory(files), "backup/data/a/wal")
	if n := len(mustTablets(t, f)); n != 4 || codesIn(f) != "kudu.layout.missing" {
		t.Errorf("%d tablets, %s", n, codesIn(f))
	}
	f = openOne(t, store.NewMemory(files), "backup/data/a/data/data")
	n := 0
	for range f.AllBlocks(ctx) {
		n++
	}
	if n != 14 || codesIn(f) != "kudu.layout.missing" {
		t.Errorf("%d blocks, %s", n, codesIn(f))
	}
	// the directories of two servers mixed
	f, err = fs.OpenFS(ctx, store.NewMemory(files),
		fs.Layout{MetaDir: "backup/data/b/wal", DataDirs: []string{"backup/data/a/data"}}, fs.FSOptions{})
	if err != nil || codesIn(f) != "kudu.instance.other" {
		t.Errorf("%v, %s", err, codesIn(f))
	}
}

// The error about block manager logr names it.
func TestOtherBlockManagers(t *testing.T) {
	tree := edit(t, "log", func(files map[string][]byte) {
		b, err := os.ReadFile("testdata/logr.block_manager_instance")
		if err != nil {
			t.Fatal(err)
		}
		files["srv/data/data/block_manager_instance"] = b
	})
	ls, err := fs.FindServers(context.Background(), tree, "srv", fs.FSOptions{})
	if err != nil || len(ls) != 1 {
		t.Fatalf("%v, %v", ls, err)
	}
	f, err := fs.OpenFS(context.Background(), tree, ls[0], fs.FSOptions{})
	if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "logr") || f.BlockManager != "logr" ||
		pbc.SpanOf(err).Len != 6 {
		t.Error(err)
	}
	// also if only the RocksDB directory shows it
	tree = edit(t, "log", func(files map[string][]byte) {
		delete(files, "srv/data/data/block_manager_instance")
		files["srv/data/data/rdb/CURRENT"] = []byte("MANIFEST-000005\n")
	})
	if _, err = fs.OpenFS(context.Background(), tree, ls[0], fs.FSOptions{}); !errors.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), "logr") {
		t.Error(err)
	}
}

// Explicit directories, metadata in the first data root, and one directory for everything.
func TestExplicitLayout(t *testing.T) {
	ctx := context.Background()
	files := loadTree(t, "testdata/log", "srv")
	one := map[string][]byte{}
	for n, b := range files {
		one["one/"+strings.TrimPrefix(strings.TrimPrefix(n, "srv/wal/"), "srv/data/")] = b
	}
	siblings := map[string][]byte{}
	for n, b := range files {
		siblings[strings.Replace(n, "srv/wal/", "srv/data/", 1)] = b
	}
	for _, x := range []struct {
		files map[string][]byte
		l     fs.Layout
	}{
		{files, fs.Layout{MetaDir: "srv/wal", DataDirs: []string{"srv/data"}}},
		{files, fs.Layout{WALDir: "srv/wal", DataDirs: []string{"srv/data"}}},
		{files, fs.Layout{WALDir: "srv/wal", MetaDir: "srv/wal", DataDirs: []string{"srv/data"}}},
		{one, fs.Layout{WALDir: "one"}},
		{siblings, fs.Layout{DataDirs: []string{"srv/data"}}},
	} {
		f, err := fs.OpenFS(ctx, store.NewMemory(x.files), x.l, fs.FSOptions{})
		if err != nil {
			t.Fatal(err)
		}
		tablets := mustTablets(t, f)
		if err := f.CheckBlocks(ctx, tablets); err != nil || len(tablets) != 4 || len(f.Blocks) != 14 {
			t.Errorf("%+v: %d tablets, %v", x.l, len(tablets), err)
		}
		healthy(t, f)
	}
	if ls, err := fs.FindServers(ctx, store.NewMemory(one), "", fs.FSOptions{}); err != nil ||
		dump(ls) != dump([]fs.Layout{{MetaDir: "one", DataDirs: []string{"one"}}}) {
		t.Errorf("%s, %v", dump(ls), err)
	}
	f, err := fs.OpenFS(ctx, store.NewMemory(files),
		fs.Layout{MetaDir: "srv/wal", DataDirs: []string{"srv/nothing"}}, fs.FSOptions{})
	if err != nil || codesIn(f) != "kudu.datadir.damaged kudu.instance.missing kudu.layout.missing" {
		t.Errorf("%v, %s", err, codesIn(f))
	}
	if err := f.CheckBlocks(ctx, mustTablets(t, f)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, x := range f.Findings {
		if x.Code == "kudu.block.missing" {
			if n++; x.At.Object == "" || x.At.Len == 0 {
				t.Errorf("%+v", x)
			}
		}
	}
	if n != 14 {
		t.Errorf("%d blocks are missing", n)
	}
	// findings are added once
	was := len(f.Findings)
	mustTablets(t, f)
	if err := f.CheckBlocks(ctx, mustTablets(t, f)); err != nil || len(f.Findings) != was {
		t.Errorf("%d findings, then %d", was, len(f.Findings))
	}
}

// The archive with logs has a master and a tablet server, and segments for each tablet.
func TestCorpusWithWAL(t *testing.T) {
	tree := store.NewMemory(unpack(t, filepath.Join(corpusDir(t), "fs_log", "full_with_wal.tar.zst")))
	ls, err := fs.FindServers(context.Background(), tree, "", fs.FSOptions{})
	if err != nil || len(ls) != 2 {
		t.Fatalf("%v, %v", ls, err)
	}
	for i, want := range []int{1, 27} {
		f, err := fs.OpenFS(context.Background(), tree, ls[i], fs.FSOptions{})
		if err != nil {
			t.Fatal(err)
		}
		tablets := mustTablets(t, f)
		if len(tablets) != want {
			t.Errorf("%d tablets", len(tablets))
		}
		for _, x := range tablets {
			if segs, err := f.WALSegments(context.Background(), x.ID); err != nil || len(segs) == 0 ||
				!strings.HasSuffix(segs[0].Name, "wal-000000001") {
				t.Errorf("%v, %v", segs, err)
			}
		}
		if i == 0 && (tablets[0].ID != strings.Repeat("0", 32) || tablets[0].Table != "sys.catalog") {
			t.Errorf("%s", tablets[0].Table)
		}
		if segs, err := f.WALSegments(context.Background(), "nothing"); err != nil || len(segs) > 0 {
			t.Errorf("%v, %v", segs, err)
		}
		healthy(t, f)
	}
}

// TestLayouts: each given directory replaces the one that would be found; the others are searched for. A directory
// given twice counts once.
func TestLayouts(t *testing.T) {
	ctx := context.Background()
	files := loadTree(t, "testdata/file", "srv")
	for n, b := range loadTree(t, "testdata/log", "other") {
		files[n] = b
	}
	tree := store.NewMemory(files)
	for _, dir := range []string{"srv", ""} { // one server; two, of which one is selected
		for _, given := range []fs.Layout{{WALDir: "srv/wal"}, {MetaDir: "srv/wal"},
			{DataDirs: []string{"srv/data"}}, {DataDirs: []string{"srv/data", "srv/data/"}},
			{DataDirs: []string{"srv/data/data"}}} {
			ls, err := fs.Layouts(ctx, tree, dir, given, fs.FSOptions{})
			if err != nil || len(ls) != 1 {
				t.Errorf("%q, %+v: %v, %v", dir, given, ls, err)
				continue
			}
			f, err := fs.OpenFS(ctx, tree, ls[0], fs.FSOptions{})
			if err != nil {
				t.Fatal(err)
			}
			tablets := mustTablets(t, f)
			if err := f.CheckBlocks(ctx, tablets); err != nil || len(tablets) != 1 || len(f.DataDirs) != 1 ||
				len(f.Findings) > 0 {
				t.Errorf("%q, %+v: %d tablets, %d data directories, %v, %v", dir, given, len(tablets),
					len(f.DataDirs), f.Findings, err)
			}
		}
	}
	if _, err := fs.Layouts(ctx, tree, "", fs.Layout{WALDir: "elsewhere"}, fs.FSOptions{}); !errors.Is(err,
		fault.Invalid) {
		t.Error(err)
	}
	all := fs.Layout{WALDir: "a", MetaDir: "b", DataDirs: []string{"c"}}
	if ls, err := fs.Layouts(ctx, tree, "nothing", all, fs.FSOptions{}); err != nil ||
		dump(ls) != dump([]fs.Layout{all}) {
		t.Error(ls, err)
	}
	// a nil tree is the machine's file system
	ls, err := fs.FindServers(ctx, nil, "testdata/file", fs.FSOptions{})
	if err != nil || len(ls) != 1 {
		t.Fatal(ls, err)
	}
	if f, err := fs.OpenFS(ctx, nil, ls[0], fs.FSOptions{}); err != nil || len(mustTablets(t, f)) != 1 {
		t.Error(err)
	}
}
