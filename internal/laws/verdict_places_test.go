package laws_test

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/kudubackup"
	"stoa/format/parquet"
	"stoa/store"
)

var everyFormat = append(slices.Clone(stoa.Formats), parquet.Format, kudubackup.Format)

// place is a file or directory in memory for which laws are checked.
type place struct {
	name  string // for messages
	at    string // its name in files
	table string // the part after '#'
	files map[string][]byte
}

func (p *place) uri() string {
	if p.table != "" {
		return p.at + "#" + p.table
	}
	return p.at
}

// heldTypes are the types of columns; each format gets the types that it can write.
var heldTypes = []arrow.DataType{
	arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64,
	arrow.FixedWidthTypes.Boolean, arrow.BinaryTypes.Binary,
	arrow.FixedWidthTypes.Timestamp_us, &arrow.Decimal128Type{Precision: 12, Scale: 2},
	arrow.ListOf(arrow.PrimitiveTypes.Int64),
	arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true}),
}

// heldPlaces returns a small table of every writable format, flat and, if the format can hold it, nested.
func heldPlaces(t *testing.T) (out []place) {
	t.Helper()
	for _, f := range everyFormat {
		if f.Create == nil {
			continue
		}
		fields := []arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}}
		for i, typ := range heldTypes {
			field := arrow.Field{Name: "c" + string(rune('0'+i)), Type: typ, Nullable: true}
			if _, err := heldPlace(f, []arrow.Field{fields[0], field}); err == nil {
				fields = append(fields, field)
			}
		}
		for _, flat := range []bool{true, false} {
			some := fields
			if flat {
				some = slices.DeleteFunc(slices.Clone(fields),
					func(f arrow.Field) bool { return arrow.IsNested(f.Type.ID()) })
			} else if len(fields) < 2 || !arrow.IsNested(fields[len(fields)-1].Type.ID()) {
				continue
			}
			p, err := heldPlace(f, some)
			if err != nil {
				t.Errorf("%s: %v", f.Name, err)
				continue
			}
			if p.name = f.Name; !flat {
				p.name += ", nested"
			}
			out = append(out, p)
		}
	}
	if len(out) < 12 {
		t.Errorf("only %d places were made", len(out))
	}
	return out
}

func heldColumn(r *rand.Rand, typ arrow.DataType, rows int) arrow.Array {
	st, ok := typ.(*arrow.StructType)
	if !ok {
		return formattest.Random(r, typ, rows, 20)
	}
	var children []arrow.Array
	for _, f := range st.Fields() {
		children = append(children, heldColumn(r, f.Type, rows))
	}
	out, err := array.NewStructArrayWithFields(children, st.Fields())
	if err != nil {
		panic(err)
	}
	return out
}

func heldPlace(f format.Format, fields []arrow.Field) (place, error) {
	const rows = 60
	ctx, r, mem := context.Background(), rand.New(rand.NewPCG(7, 7)), store.NewMemory(nil)
	sc := arrow.NewSchema(fields, nil)
	var cols []arrow.Array
	for i, field := range fields {
		if i > 0 {
			cols = append(cols, heldColumn(r, field.Type, rows))
			continue
		}
		b := array.NewInt64Builder(arrowMemory)
		for n := range int64(rows) {
			b.Append(n * n)
		}
		cols = append(cols, b.NewArray())
	}
	p := place{at: "t"}
	if len(f.Extensions) > 0 {
		p.at += f.Extensions[0]
	}
	var opts map[string]string
	if f.Name == kudubackup.Format.Name {
		p.at, opts = "t", map[string]string{"table": "t", "key": "k"}
	}
	w, err := f.Create(ctx, mem.Sink(p.at), sc, format.WriteOptions{Rows: -1, Opts: opts})
	if err == nil {
		err = w.Write(ctx, array.NewRecordBatch(sc, cols, rows))
	}
	if err == nil {
		_, err = w.Close(ctx)
	}
	p.files = map[string][]byte{}
	for _, name := range mem.Names() {
		p.files[name] = mem.Bytes(name)
	}
	if f.Name == kudubackup.Format.Name { // use the directory of the backup's files
		for _, name := range mem.Names() {
			p.at = path.Dir(name)
		}
	}
	return p, err
}

// keptPlaces returns files and directories of other writers.
func keptPlaces(t *testing.T, long string) (out []place) {
	t.Helper()
	for dir, endings := range map[string][]string{
		"corpus/trevni": {".trv"}, "corpus/redfile": {".red"}, "format/ipc/testdata": {".arrow", ".arrows"},
		"format/parquet/testdata": {".parquet"},
	} {
		for _, name := range corpusFiles(t, dir, endings...) {
			out = append(out, placeAt(t, name, ""))
		}
	}
	for i, name := range corpusFiles(t, "corpus/kudu", ".cfile") {
		if i%37 == 0 {
			out = append(out, placeAt(t, name, ""))
		}
	}
	for _, name := range []string{"format/kudu/testdata/file", "format/kudu/testdata/log",
		"corpus/carbon/1.0.0/v1_complex", "corpus/carbon/1.0.0/v2_b2000",
		"corpus/carbon/2.3.0/managed/managed_del", "corpus/carbon/2.3.0/managed/managed_complex",
		"corpus/carbon/2.3.0/streaming/sink"} {
		out = append(out, placesAt(t, name)...)
	}
	if long == "" {
		return out
	}
	err := filepath.WalkDir(long, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir() && slices.Contains([]string{".trv", ".red", ".cfile", ".carbondata", ".arrow", ".parquet"},
			filepath.Ext(name)):
			if info, err := d.Info(); err == nil && 0 < info.Size() && info.Size() < 100_000 {
				out = append(out, placeAt(t, name, ""))
			}
		case d.IsDir() && isDir(filepath.Join(name, "Metadata")):
			out = append(out, placesAt(t, name)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// placeAt reads a file or directory into memory.
func placeAt(t *testing.T, name, table string) place {
	t.Helper()
	p := place{name: name, at: filepath.Base(name), table: table, files: map[string][]byte{}}
	err := filepath.WalkDir(name, func(f string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(filepath.Dir(name), f)
		if err != nil {
			return err
		}
		p.files[filepath.ToSlash(rel)], err = os.ReadFile(f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// placesAt returns a directory once for each of its tables, at most three times.
func placesAt(t *testing.T, name string) (out []place) {
	t.Helper()
	for e, err := range stoa.List(t.Context(), name, stoa.OpenOptions{Formats: everyFormat, Tree: store.Local{}}) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(out) < 3 {
			p := placeAt(t, name, e.Table)
			p.name = strings.TrimSuffix(name+"#"+e.Table, "#")
			out = append(out, p)
		}
	}
	return out
}
