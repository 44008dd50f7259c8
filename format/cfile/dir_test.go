package cfile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/formattest"
	"stoa/region"
	"stoa/store"
)

// dirRows is the number of rows of the directory of these tests: several blocks per column.
const dirRows = 300

// dirCell returns a cell of the directory of these tests, as in Arrow's JSON.
func dirCell(column string, row int) string {
	switch column {
	case "id":
		return fmt.Sprint(row * 3)
	case "opt":
		if row%7 == 2 {
			return "null"
		}
		return fmt.Sprint(row - 100)
	case "name":
		return fmt.Sprintf("%q", fmt.Sprintf("word %d", row*row))
	case "v":
		return fmt.Sprint(float64(row) + 0.5)
	case "w":
		return fmt.Sprint(float64(-row) - 0.25)
	case "l":
		return fmt.Sprintf("[%q,%q]", fmt.Sprint("x", row), fmt.Sprint("y", row%5))
	case "b":
		return fmt.Sprint(row%3 == 0)
	}
	panic(column)
}

var dirColumns = []arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "opt", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "name", Type: arrow.BinaryTypes.String}, {Name: "v", Type: arrow.PrimitiveTypes.Float64},
	{Name: "w", Type: arrow.PrimitiveTypes.Float64}, {Name: "b", Type: arrow.FixedWidthTypes.Boolean},
	{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.String)},
}

// dirFiles writes that directory under the name t.
func dirFiles(t *testing.T) map[string][]byte {
	return dirFilesOf(t, dirCell, map[string]string{"block-size": "512"})
}

// dirFilesOf writes a directory with the same columns and other cells.
func dirFilesOf(t *testing.T, cell func(column string, row int) string, opts map[string]string) map[string][]byte {
	var text strings.Builder
	for i := range dirRows {
		for j, f := range dirColumns {
			fmt.Fprintf(&text, "%s%q:%s", []string{"{", ","}[min(j, 1)], f.Name, cell(f.Name, i))
		}
		text.WriteString("}")
	}
	ctx, m, sc := context.Background(), store.NewMemory(nil), arrow.NewSchema(dirColumns, nil)
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(text.String()),
		array.WithMultipleDocs())
	if err != nil {
		t.Fatal(err)
	}
	w, err := cfile.Format.Create(ctx, m.Sink("t"), sc, format.WriteOptions{Opts: opts})
	if err == nil {
		err = w.Write(ctx, b)
	}
	if err == nil {
		_, err = w.Close(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	formattest.Sound(t, &cfile.Format, m, "t")
	files := map[string][]byte{}
	for _, n := range m.Names() {
		files[n] = m.Bytes(n)
	}
	return files
}

// dirRead reads the directory and returns whether anything was reported. A cell that differs from what was written
// fails the test, unless it is null and something was reported.
func dirRead(t *testing.T, what string, files map[string][]byte, recover bool, columns ...string) (rows int64,
	cells map[string]int, reported string) {
	t.Helper()
	o := stoa.OpenOptions{Tree: store.NewMemory(files), Recover: recover}
	tab, err := stoa.Open(context.Background(), "t", o)
	if err != nil {
		return 0, nil, err.Error()
	}
	defer tab.Close()
	for _, f := range tab.Findings() {
		if f.Severity == region.Error {
			reported += f.Code + " " + f.Message + "; "
		}
	}
	spec := stoa.ScanSpec{Columns: columns}
	if recover {
		spec.Damaged, spec.Lost = stoa.NullCells, func(l region.Loss) { reported += fmt.Sprint(l.Err) }
	}
	wrong := 0
	cells = map[string]int{}
	for b, err := range tab.Scan(context.Background(), spec) {
		if err != nil {
			return rows, cells, reported + err.Error()
		}
		for j, f := range b.Schema().Fields() {
			col := b.Column(j)
			for i := range col.Len() {
				want := "null"
				if !slices.ContainsFunc(dirColumns, func(c arrow.Field) bool { return c.Name == f.Name }) {
					wrong++
				} else if want = dirCell(f.Name, int(rows)+i); col.IsValid(i) {
					cells[f.Name]++
				}
				if got := col.ValueStr(i); col.IsValid(i) && got != strings.Trim(want, `"`) {
					wrong++
				} else if col.IsNull(i) && want != "null" && reported == "" {
					t.Errorf("%s: row %d of %s is null, but no loss is reported", what, int(rows)+i, f.Name)
				}
			}
		}
		rows += b.NumRows()
	}
	if wrong > 0 {
		t.Errorf("%s (recover %t): %d cells are wrong; reported: %s", what, recover, wrong, reported)
	}
	if (rows != dirRows || columns == nil && len(cells) != len(dirColumns)) && reported == "" {
		t.Errorf("%s (recover %t): %d rows of %d columns, but no loss is reported", what, recover, rows, len(cells))
	}
	return rows, cells, reported
}

// dirVerified returns what verify reports at each depth.
func dirVerified(files map[string][]byte) (reported [3]string) {
	for i, d := range []format.Depth{format.Quick, format.Sums, format.Deep} {
		o := stoa.OpenOptions{Tree: store.NewMemory(files), Depth: d}
		for f, err := range stoa.Verify(context.Background(), "t", o) {
			if err != nil {
				reported[i] += err.Error()
			} else if f.Severity == region.Error {
				reported[i] += fmt.Sprintf("%s %s %s; ", f.Code, f.At.Object, f.Message)
			}
		}
	}
	return reported
}

// checkDirDamage reads, recovers and verifies a directory with a changed file: each must report something.
func checkDirDamage(t *testing.T, what string, files map[string][]byte) {
	t.Helper()
	if _, _, reported := dirRead(t, what, files, false); reported == "" {
		t.Errorf("%s: reading returns no error", what)
	}
	if _, _, reported := dirRead(t, what, files, true); reported == "" {
		t.Errorf("%s: recover reports nothing", what)
	}
	for i, reported := range dirVerified(files) {
		if reported == "" {
			t.Errorf("%s: verify reports nothing at depth %d", what, i)
		}
	}
}

// TestDirExchange: a column's file in place of another column's is reported by every verb, and none of its rows is
// returned.
func TestDirExchange(t *testing.T) {
	healthy := dirFiles(t)
	if rows, _, reported := dirRead(t, "healthy", healthy, false); rows != dirRows || reported != "" {
		t.Fatal(rows, reported)
	}
	for i, reported := range dirVerified(healthy) {
		if reported != "" {
			t.Fatal(i, reported)
		}
	}
	names := slices.Sorted(maps.Keys(healthy))
	for _, a := range names {
		for _, b := range names {
			if a == b {
				continue
			}
			files := maps.Clone(healthy)
			files[a] = healthy[b]
			checkDirDamage(t, b+" copied over "+a, files)
			if files[b] = healthy[a]; a < b {
				checkDirDamage(t, a+" and "+b+" exchanged", files)
			}
		}
	}
	// The message names file and column.
	files := maps.Clone(healthy)
	files["t/v.cfile"] = healthy["t/b.cfile"]
	if _, _, reported := dirRead(t, "b over v", files, false); !strings.Contains(reported, "t/v.cfile[") ||
		!strings.Contains(reported, `found that of "b"`) {
		t.Error(reported)
	}
}

// TestDirOtherTable: a file of another table with the same shape is reported by every verb, for each column, with and
// without checksums, and only the cells of that column are lost. With a table.json of another table no cell is lost.
func TestDirOtherTable(t *testing.T) {
	other := func(column string, row int) string { return dirCell(column, dirRows-1-row) }
	for _, opts := range []map[string]string{{}, {"checksums": "false"},
		{"encoding.v": "plain", "encoding.w": "plain"}} {
		healthy, foreign := dirFilesOf(t, dirCell, opts), dirFilesOf(t, other, opts)
		if again := dirFilesOf(t, dirCell, opts); !maps.EqualFunc(healthy, again, bytes.Equal) {
			t.Error("the same rows make other files")
		}
		for _, reported := range dirVerified(healthy) {
			if reported != "" {
				t.Fatal(opts, reported)
			}
		}
		for name := range healthy {
			files := maps.Clone(healthy)
			files[name] = foreign[name]
			what := fmt.Sprint(opts, name, " of another table")
			checkDirDamage(t, what, files)
			rows, cells, reported := dirRead(t, what, files, true)
			for _, c := range dirColumns {
				if lost := name == "t/"+c.Name+".cfile"; rows != dirRows || lost != (cells[c.Name] == 0) {
					t.Errorf("%s: %d rows, %d cells of %s: %s", what, rows, cells[c.Name], c.Name, reported)
				}
			}
			delete(files, "t/table.json")
			if name != "t/table.json" {
				dirRead(t, what+", and no table.json", files, true)
			}
		}
	}
}

// TestDirLastFile: a directory that has lost table.json and all columns but one is not read as that single column.
func TestDirLastFile(t *testing.T) {
	healthy := dirFiles(t)
	for name, b := range healthy {
		if name == "t/table.json" {
			continue
		}
		files := map[string][]byte{name: b}
		checkDirDamage(t, "only "+name+" is left", files)
		if rows, _, reported := dirRead(t, name+" recovered", files, true); rows != dirRows || reported == "" {
			t.Errorf("only %s is left: %d rows recovered: %s", name, rows, reported)
		}
	}
}

// TestDirTornSet: if table.json is cut after the table's id, and one of two columns is another table's, the id tells
// which one.
func TestDirTornSet(t *testing.T) {
	other := func(column string, row int) string { return dirCell(column, dirRows-1-row) }
	healthy, foreign := dirFilesOf(t, dirCell, nil), dirFilesOf(t, other, nil)
	set := healthy["t/table.json"]
	cut := bytes.Index(set, []byte(`"schema"`))
	if cut < 0 {
		t.Fatalf("%s", set)
	}
	for _, foreignColumn := range []string{"b", "v"} {
		files := map[string][]byte{"t/table.json": set[:cut]}
		for _, name := range []string{"t/b.cfile", "t/v.cfile"} {
			files[name] = healthy[name]
		}
		files["t/"+foreignColumn+".cfile"] = foreign["t/"+foreignColumn+".cfile"]
		rows, cells, reported := dirRead(t, foreignColumn+" is another table's", files, true)
		for _, c := range []string{"b", "v"} {
			if rows != dirRows || reported == "" || (c == foreignColumn) != (cells[c] == 0) {
				t.Errorf("%s is another table's: %d rows, %d cells of %s: %s", foreignColumn, rows, cells[c], c,
					reported)
			}
		}
	}
}

// TestDirTornProbed: a directory whose table.json has lost any one byte is still recognized as a table of CFiles, even
// if its files bear each other's names.
func TestDirTornProbed(t *testing.T) {
	healthy := dirFiles(t)
	set := healthy["t/table.json"]
	for off := range set {
		for _, exchanged := range []bool{false, true} {
			files := maps.Clone(healthy)
			files["t/table.json"] = slices.Delete(slices.Clone(set), off, off+1)
			if exchanged {
				files["t/b.cfile"], files["t/v.cfile"] = files["t/v.cfile"], files["t/b.cfile"]
			}
			tg := format.Target{Tree: store.NewMemory(files), Name: "t"}
			if m, err := cfile.Format.Probe(t.Context(), tg); m < format.Likely || err != nil {
				t.Errorf("without byte %d, exchanged %v: %v, %v", off, exchanged, m, err)
			}
		}
	}
}

// TestDirWithoutID: directories written before ids existed, and those with plain metadata, can be read. A file without
// an id in a directory with one, and the reverse, is reported.
func TestDirWithoutID(t *testing.T) {
	plain := dirFilesOf(t, dirCell, map[string]string{"plain-metadata": "true"})
	if bytes.Contains(plain["t/table.json"], []byte(`"id": "`)) || bytes.Contains(plain["t/v.cfile"], []byte("stoa.")) {
		t.Error("plain metadata have an id")
	}
	if rows, _, reported := dirRead(t, "plain", plain, false); rows != dirRows || reported != "" {
		t.Error(rows, reported)
	}
	for _, reported := range dirVerified(plain) {
		if reported != "" {
			t.Error(reported)
		}
	}
	healthy := dirFilesOf(t, dirCell, nil)
	for _, x := range [][2]map[string][]byte{{healthy, plain}, {plain, healthy}} {
		files := maps.Clone(x[0])
		files["t/v.cfile"] = x[1]["t/v.cfile"]
		checkDirDamage(t, "a file with an id among those without, or the reverse", files)
	}
}

// TestDirStamp: the stamp changes with any file of the directory.
func TestDirStamp(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	var names []string
	for name, b := range dirFiles(t) {
		names = append(names, filepath.Join(dir, filepath.Base(name)))
		if err := os.WriteFile(names[len(names)-1], b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stamp := func() string {
		r, err := cfile.Format.Open(ctx, format.Target{Tree: store.Local{}, Name: filepath.ToSlash(dir)},
			format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for p, err := range r.Parts(ctx, format.Query{}) {
			if err != nil || p.Stamp == "" {
				t.Fatal(p, err)
			}
			return p.Stamp
		}
		return ""
	}
	seen := map[string]string{stamp(): "unchanged"}
	if s := stamp(); seen[s] == "" {
		t.Error("the stamp of an unchanged directory is another", s)
	}
	for i, name := range names {
		if err := os.Chtimes(name, time.Time{}, time.Unix(int64(1000+i), 0)); err != nil {
			t.Fatal(err)
		}
		s := stamp()
		if seen[s] != "" {
			t.Errorf("%s was replaced, and the stamp is that of %s", name, seen[s])
		}
		seen[s] = name
	}
}

// dirDamages are kinds of damage to a file; nil: it is removed.
var dirDamages = map[string]func(b []byte) []byte{
	"removed":           func([]byte) []byte { return nil },
	"emptied":           func([]byte) []byte { return []byte{} },
	"halved":            func(b []byte) []byte { return b[:len(b)/2] },
	"cut a little":      func(b []byte) []byte { return b[:len(b)-3] }, // table.json ends in a line feed
	"zeroed":            func(b []byte) []byte { return make([]byte, len(b)) },
	"zeroed in the end": func(b []byte) []byte { return append(b[:len(b)-12:len(b)-12], make([]byte, 12)...) },
}

// TestDirDamage: a file that is cut, zeroed or removed is reported, and all other columns are read.
func TestDirDamage(t *testing.T) {
	healthy := dirFiles(t)
	for name, b := range healthy {
		for damage, f := range dirDamages {
			files := maps.Clone(healthy)
			if x := f(b); x != nil {
				files[name] = x
			} else {
				delete(files, name)
			}
			what := name + " " + damage
			checkDirDamage(t, what, files)
			rows, cells, reported := dirRead(t, what, files, true)
			if rows != dirRows {
				t.Errorf("%s: %d rows are recovered: %s", what, rows, reported)
			}
			var others []string
			for _, c := range dirColumns {
				if name == "t/"+c.Name+".cfile" {
					// b is one block
					if damage == "halved" && c.Name != "b" && (cells[c.Name] == 0 || cells[c.Name] == dirRows) {
						t.Errorf("%s: %d cells are recovered: %s", what, cells[c.Name], reported)
					}
					continue
				}
				others = append(others, c.Name)
				want := 0
				for i := range dirRows {
					if dirCell(c.Name, i) != "null" {
						want++
					}
				}
				if cells[c.Name] != want {
					t.Errorf("%s: %d cells of %s are recovered, there are %d", what, cells[c.Name], c.Name, want)
				}
			}
			if rows, cells, _ := dirRead(t, what, files, true, others...); rows != dirRows ||
				len(cells) != len(others) {
				t.Errorf("%s: %d rows of %v", what, rows, cells)
			}
		}
	}
}

// TestDirCounts: if the footer of a column without checksums states fewer or more rows than its blocks and table.json,
// recovery trusts these two, loses nothing, and reports that.
func TestDirCounts(t *testing.T) {
	healthy := dirFilesOf(t, dirCell, map[string]string{"checksums": "false"})
	was, tried := binary.AppendUvarint(nil, dirRows), 0
	for _, c := range dirColumns {
		name := "t/" + c.Name + ".cfile"
		at := bytes.LastIndex(healthy[name], was) // in the footer
		if at < 0 {
			t.Fatalf("%s: no number of rows", name)
		}
		for _, n := range []uint64{dirRows - 9, dirRows - 1, dirRows + 1, dirRows + 9} {
			is := binary.AppendUvarint(nil, n)
			if len(is) != len(was) {
				continue
			}
			tried++
			files, what := maps.Clone(healthy), fmt.Sprintf("%s with %d rows", name, n)
			files[name] = slices.Replace(slices.Clone(healthy[name]), at, at+len(was), is...)
			checkDirDamage(t, what, files)
			rows, cells, reported := dirRead(t, what, files, true)
			want := 0
			for i := range dirRows {
				if dirCell(c.Name, i) != "null" {
					want++
				}
			}
			if rows != dirRows || cells[c.Name] != want || !strings.Contains(reported, "cfile.numvalues") {
				t.Errorf("%s: %d rows, %d cells of %d: %s", what, rows, cells[c.Name], want, reported)
			}
		}
	}
	if tried == 0 {
		t.Error("nothing was tried")
	}
}

// TestDirSetBits: with any bit of table.json flipped no cell is wrong, and no column or row is lost without a report.
// Every verb reports each flipped bit before the checksum.
func TestDirSetBits(t *testing.T) {
	healthy := dirFiles(t)
	set := healthy["t/table.json"]
	for i := 0; i < 8*len(set); i += 97 {
		files := maps.Clone(healthy)
		b := bytes.Clone(set)
		b[i/8] ^= 1 << (i % 8)
		files["t/table.json"] = b
		what := fmt.Sprintf("bit %d of table.json", i)
		_, _, strict := dirRead(t, what, files, false)
		_, _, recovered := dirRead(t, what, files, true)
		verified := dirVerified(files)
		if i/8 >= bytes.LastIndex(set, []byte(`"crc32c"`)) {
			continue
		}
		if strict == "" || recovered == "" || slices.Contains(verified[:], "") {
			t.Errorf("%s: read: %q, recovered: %q, verified: %q", what, strict, recovered, verified)
		}
	}
}

// TestDirOtherSet: in a set whose files have no id, every verb reports a table.json of another table if a file has a
// different size.
func TestDirOtherSet(t *testing.T) {
	plain := map[string]string{"plain-metadata": "true", "encoding.v": "plain", "compression.v": "none"}
	healthy := dirFilesOf(t, dirCell, plain)
	longer := dirFilesOf(t, func(column string, row int) string { return dirCell(column, dirRows-1-row) }, plain)
	for name, b := range longer {
		if name == "t/table.json" || len(b) == len(healthy[name]) {
			continue
		}
		files := maps.Clone(healthy)
		files["t/table.json"] = longer["t/table.json"]
		checkDirDamage(t, "table.json of another set", files)
		return
	}
	t.Error("no file has another length")
}

// TestDirOtherBytes: in such a set, a file of another table with the same size is reported by verify at every depth
// except quick.
func TestDirOtherBytes(t *testing.T) {
	plain := map[string]string{"plain-metadata": "true", "encoding": "plain", "compression": "none"}
	healthy := dirFilesOf(t, dirCell, plain)
	other := dirFilesOf(t, func(column string, row int) string { return dirCell(column, dirRows-1-row) }, plain)
	tried := 0
	for name, b := range other {
		if name == "t/table.json" || len(b) != len(healthy[name]) || bytes.Equal(b, healthy[name]) {
			continue
		}
		tried++
		files := maps.Clone(healthy)
		files[name] = b
		reported := dirVerified(files)
		if reported[0] != "" || !strings.Contains(reported[1], "another table's") ||
			!strings.Contains(reported[2], "another table's") {
			t.Errorf("%s: %q", name, reported)
		}
	}
	if tried == 0 {
		t.Error("nothing was tried")
	}
}

// TestDirFrames: with any bit of the header or footer of a column's file flipped, or bytes appended to it, all its
// cells are recovered by means of the table's schema.
func TestDirFrames(t *testing.T) {
	healthy := dirFiles(t)
	for _, c := range dirColumns {
		name := "t/" + c.Name + ".cfile"
		whole := healthy[name]
		foot := len(whole) - 12 - int(binary.LittleEndian.Uint32(whole[len(whole)-4:])) - 4
		head := 12 + int(binary.LittleEndian.Uint32(whole[8:])) + 4
		want := 0
		for i := range dirRows {
			if dirCell(c.Name, i) != "null" {
				want++
			}
		}
		check := func(what string, b []byte) {
			files := maps.Clone(healthy)
			files[name] = b
			if rows, cells, reported := dirRead(t, what, files, true); rows != dirRows || cells[c.Name] != want ||
				reported == "" {
				t.Errorf("%s: %d rows, %d cells of %d: %s", what, rows, cells[c.Name], want, reported)
			}
		}
		for i := range 8 * (head + len(whole) - foot) {
			if os.Getenv("STOA_LONG") == "" && i%5 != 0 || testing.Short() && i%35 != 0 {
				continue
			}
			at := i / 8
			if at >= head {
				at += foot - head
			}
			b := bytes.Clone(whole)
			b[at] ^= 1 << (i % 8)
			check(fmt.Sprintf("%s: bit %d of byte %d of %d", name, i%8, at, len(b)), b)
		}
		for _, n := range []int{1, 11, 5000} {
			check(fmt.Sprintf("%s: %d bytes after it", name, n), append(bytes.Clone(whole), make([]byte, n)...))
		}
	}
}

// TestDirSetNames: a table.json with a wrong letter in its kind, its version or the file of a column is reported, and
// nothing is lost.
func TestDirSetNames(t *testing.T) {
	healthy := dirFiles(t)
	for _, damage := range [][2]string{{"cfile-set", "cfile-wet"}, {`"version": 1`, `"version": 9`},
		{"opt.cfile", "oqt.cfile"}, {"v.cfile", "w.cfile"}, {`"id.cfile"`, `"b.cfile"`}} {
		files := maps.Clone(healthy)
		files["t/table.json"] = bytes.Replace(healthy["t/table.json"], []byte(damage[0]), []byte(damage[1]), 1)
		what := fmt.Sprint(damage)
		checkDirDamage(t, what, files)
		rows, cells, reported := dirRead(t, what, files, true)
		if rows != dirRows || cells["v"] != dirRows || cells["w"] != dirRows || cells["id"] != dirRows ||
			cells["b"] != dirRows || cells["opt"] == 0 {
			t.Errorf("%s: %d rows, cells %v: %s", what, rows, cells, reported)
		}
	}
}

// TestDirPaths: if table.json has lost its schema and what the path of a column is, the column has the name in its own
// file, and nothing is lost.
func TestDirPaths(t *testing.T) {
	healthy := dirFiles(t)
	set := healthy["t/table.json"]
	paths := regexp.MustCompile(`"path": "`).FindAllIndex(set, -1)
	if len(paths) < 5 {
		t.Fatalf("%d paths in %s", len(paths), set)
	}
	for _, at := range paths {
		files := maps.Clone(healthy)
		b := bytes.Clone(set)
		b[at[0]+3] ^= 2
		b[bytes.Index(b, []byte(`"schema": "`))+len(`"schema": "/////+gA`)] ^= 4
		files["t/table.json"] = b
		what := fmt.Sprintf("the path at %d", at[0])
		checkDirDamage(t, what, files)
		rows, cells, reported := dirRead(t, what, files, true)
		if rows != dirRows || cells["v"] != dirRows || cells["w"] != dirRows || cells["id"] != dirRows ||
			cells["b"] != dirRows || cells["opt"] == 0 || reported == "" {
			t.Errorf("%s: %d rows, cells %v: %s", what, rows, cells, reported)
		}
	}
}

// TestDirTie: if table.json is unreadable and one of two columns is another table's, it is unknown which one. No rows
// that mix the two are returned, and the error names both files.
func TestDirTie(t *testing.T) {
	other := func(column string, row int) string { return dirCell(column, dirRows-1-row) }
	healthy, foreign := dirFilesOf(t, dirCell, nil), dirFilesOf(t, other, nil)
	for _, set := range [][]byte{nil, []byte("kudu"), healthy["t/b.cfile"]} {
		for _, foreignColumn := range []string{"b", "v"} {
			files := map[string][]byte{"t/b.cfile": healthy["t/b.cfile"], "t/v.cfile": healthy["t/v.cfile"]}
			if set != nil {
				files["t/table.json"] = set
			}
			whole := maps.Clone(files)
			files["t/"+foreignColumn+".cfile"] = foreign["t/"+foreignColumn+".cfile"]
			rows, _, reported := dirRead(t, foreignColumn+" is another table's", files, true)
			if rows > 0 || !strings.Contains(reported, "b.cfile") || !strings.Contains(reported, "v.cfile") {
				t.Errorf("%.4s, %s is another table's: %d rows: %s", set, foreignColumn, rows, reported)
			}
			if rows, _, reported := dirRead(t, "both are the table's", whole, true); rows != dirRows {
				t.Errorf("%.4s: %d rows: %s", set, rows, reported)
			}
		}
	}
}
