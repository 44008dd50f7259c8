package attack

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// splitMeta is the file of a split RedFile that names the parts.
const splitMeta = "_metadata.red"

// orphaned reports whether the file that names a table's parts is missing or is another table's. Parts are complete
// files and do not name their table, so if their columns are equal, nothing shows which parts are the table's.
func (c *trial) orphaned() bool {
	k := slices.IndexFunc(c.f.files, func(name string) bool { return strings.HasSuffix(name, splitMeta) })
	if !c.moved || k < 0 {
		return false
	}
	is, err := os.ReadFile(filepath.Join(c.dir, c.f.files[k]))
	if err != nil {
		return true
	}
	return slices.ContainsFunc([]*fixture{c.f.stale, c.f.other}, func(f *fixture) bool {
		if f == nil {
			return false
		}
		was, err := os.ReadFile(filepath.Join(f.dir, c.f.files[k]))
		return err == nil && bytes.Equal(is, was)
	})
}

// orphans returns the rows of other tables' intact parts in the copy, if nothing shows whose parts they are.
func (c *trial) orphans() (rows []string) {
	if !c.orphaned() {
		return nil
	}
	for _, f := range []*fixture{c.f.stale, c.f.other} {
		if f != nil && slices.ContainsFunc(c.f.files, func(name string) bool {
			is, err := os.ReadFile(filepath.Join(c.dir, name))
			was, err2 := os.ReadFile(filepath.Join(f.dir, name))
			own, _ := os.ReadFile(filepath.Join(c.f.dir, name))
			return !strings.HasSuffix(name, splitMeta) && err == nil && err2 == nil && bytes.Equal(is, was) &&
				!bytes.Equal(is, own)
		}) {
			rows = append(rows, f.ref...)
		}
	}
	return rows
}

// TestOrphansOnly: rows of another table are excused if an intact part of that table is present and the file that names
// the parts is missing or another table's. They are not excused with the table's own metadata, or if the part is
// absent. Rows of no table are never excused.
func TestOrphansOnly(t *testing.T) {
	const meta, part = "t/" + splitMeta, "t/part-00000.red"
	table := func(meta, part, row string) *fixture {
		f := &fixture{name: "redfile/split", dir: t.TempDir(), files: []string{"t/" + splitMeta, "t/part-00000.red"},
			ref: []string{row}}
		put(t, f.dir, "t/"+splitMeta, meta)
		put(t, f.dir, "t/part-00000.red", part)
		return f
	}
	f := table("own", "own part", "own row")
	f.other = table("other", "other part", "other row")
	for i, x := range []struct {
		meta, part string
		moved      bool
		want       int
	}{
		{"", "other part", true, 1}, {"other", "other part", true, 1}, {"own", "other part", true, 2},
		{"harmed", "other part", true, 2}, {"", "own part", true, 2}, {"", "harmed part", true, 2},
		{"", "other part", false, 2},
	} {
		c := &trial{f: f, dir: t.TempDir(), moved: x.moved}
		if x.meta != "" {
			put(t, c.dir, meta, x.meta)
		}
		put(t, c.dir, part, x.part)
		if got := c.foreignRows([]string{"own row", "other row", "no row"}); got != x.want {
			t.Errorf("%d: %d strangers, want %d", i, got, x.want)
		}
	}
}

// TestOrderOfOrphans: exchanged parts are excused if the file that names them is missing, and if no row differs.
func TestOrderOfOrphans(t *testing.T) {
	const meta, a, b = "t/" + splitMeta, "t/part-00000.red", "t/part-00001.red"
	f := &fixture{name: "redfile/split", dir: t.TempDir(), files: []string{meta, a, b},
		ref: []string{"a", "b"}, checked: true}
	for name, text := range map[string]string{meta: "own", a: "a", b: "b"} {
		put(t, f.dir, name, text)
	}
	for i, x := range []struct {
		meta  string
		out   []string
		finds int
	}{
		{"", []string{"b", "a"}, 0}, {"own", []string{"b", "a"}, 1}, {"", []string{"b", "c"}, 1},
		{"", []string{"b"}, 1},
	} {
		c := &trial{f: f, dir: t.TempDir(), moved: true}
		if x.meta != "" {
			put(t, c.dir, meta, x.meta)
		}
		put(t, c.dir, a, "b")
		put(t, c.dir, b, "a")
		if c.whole("cat", x.out); len(c.finds) != x.finds {
			t.Errorf("%d: %v", i, c.finds)
		}
	}
}

// TestAged: a copy is judged as the older state if all its files are that state's, harmed or not.
func TestAged(t *testing.T) {
	old := &fixture{name: "trevni/dir", dir: t.TempDir(), files: []string{"t/0", "t/1"}}
	f := &fixture{name: "trevni/dir", dir: t.TempDir(), files: []string{"t/0", "t/1"}, stale: old}
	for dir, one := range map[string]string{old.dir: "old", f.dir: "new"} {
		put(t, dir, "t/0", "same")
		put(t, dir, "t/1", one)
	}
	for i, x := range []struct {
		zero, one string
		want      *fixture
	}{
		{"same", "old", old}, {"harmed", "old", old}, {"same", "new", f}, {"same", "harmed", f}, {"", "old", f},
		{"same", "harmed old", old},
	} {
		c := &trial{f: f, dir: t.TempDir(), moved: true, touched: []touch{{"t/0", 1, 2}, {"t/1", 0, 1 << 40}}}
		if x.zero != "" {
			put(t, c.dir, "t/0", x.zero)
		}
		put(t, c.dir, "t/1", x.one)
		if x.one == "harmed old" {
			c.staled = []string{"t/1"}
		}
		c.aged()
		if left := map[*fixture]int{old: 1, f: 2}[x.want]; c.f != x.want || len(c.touched) != left {
			t.Errorf("%d: %v, touched %v", i, c.f == old, c.touched)
		}
	}
}

// TestPagedOfOther: pagedOfOther is true only if all files with pages are those of one other table, byte for byte.
func TestPagedOfOther(t *testing.T) {
	other := &fixture{dir: t.TempDir()}
	f := &fixture{dir: t.TempDir(), other: other, pages: []page{{file: "t/0"}, {file: "t/1"}}}
	for _, name := range []string{"t/0", "t/1"} {
		put(t, other.dir, name, "other")
		put(t, f.dir, name, "own")
	}
	for _, x := range []struct {
		zero, one string
		want      bool
	}{{"other", "other", true}, {"other", "own", false}, {"other", "harmed", false}, {"own", "own", false}} {
		c := &trial{f: f, dir: t.TempDir(), moved: true}
		put(t, c.dir, "t/0", x.zero)
		put(t, c.dir, "t/1", x.one)
		if got := c.pagedOfOther(); got != x.want {
			t.Errorf("%v: %v", x, got)
		}
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
