package stoa_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/format/cfile"
	"stoa/format/ipc"
	"stoa/format/kudu"
	"stoa/format/kudubackup"
	"stoa/format/parquet"
	"stoa/format/redfile"
	textformat "stoa/format/text"
	"stoa/format/trevni"
)

// typedWriting and typedReading are the options structs of all formats.
var (
	typedWriting = []format.Options{redfile.WriteOptions{}, trevni.WriteOptions{}, trevni.AvroWriteOptions{},
		cfile.WriteOptions{}, carbon.WriteOptions{}, parquet.WriteOptions{}, kudubackup.WriteOptions{},
		ipc.WriteOptions{}, textformat.CSVWriteOptions{}, textformat.JSONLWriteOptions{}}
	typedReading = []format.Options{redfile.ReadOptions{}, trevni.ReadOptions{}, cfile.ReadOptions{},
		kudubackup.ReadOptions{}, carbon.ReadOptions{}, parquet.ReadOptions{}, kudu.ReadOptions{}, ipc.ReadOptions{},
		textformat.CSVReadOptions{},
		textformat.JSONLReadOptions{}}
)

// TestTypedOptions: the options struct of a format has exactly the format's keys, and each format with keys has a
// struct.
func TestTypedOptions(t *testing.T) {
	formats := append(slices.Clone(stoa.Formats), kudubackup.Format) // which is only read by name
	for what, all := range map[string][]format.Options{"writing": typedWriting, "reading": typedReading} {
		seen := map[string]bool{}
		for _, zero := range all {
			if opts := zero.Strings(); len(opts) > 0 {
				t.Errorf("%T{}: got options %v, want none", zero, opts)
			}
			full := reflect.New(reflect.TypeOf(zero)).Elem()
			fill(full)
			names := slices.Sorted(maps.Keys(full.Interface().(format.Options).Strings()))
			for _, name := range zero.Formats() {
				k := slices.IndexFunc(formats, func(f format.Format) bool { return f.Name == name })
				if k < 0 || seen[name] {
					t.Fatalf("%T: format %s is unknown, or has several structs for %s", zero, name, what)
				}
				seen[name] = true
				f := &formats[k]
				if want := keysOf(f, what); !slices.Equal(names, want) {
					t.Errorf("%T: got options %v, want those of format %s for %s, %v", zero, names, name, what, want)
				}
			}
		}
		for i := range formats {
			if f := &formats[i]; len(keysOf(f, what)) > 0 && !seen[f.Name] {
				t.Errorf("format %s has options for %s, but no struct", f.Name, what)
			}
		}
	}
}

func keysOf(f *format.Format, what string) (names []string) {
	keys := f.ReadKeys
	if what == "writing" {
		keys = f.WriteKeys
	}
	for _, k := range keys {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	return names
}

// fill sets each field to a value other than the default.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
	case reflect.Uint8, reflect.Uint64:
		v.SetUint('x')
	default:
		v.SetInt(1)
	}
}

// countedRows returns a batch of one column with n rows.
func countedRows(n int) arrow.RecordBatch {
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
	}
	return b.NewRecordBatch()
}

func writeNumbers(name string, o stoa.CreateOptions) error {
	ctx, b := context.Background(), countedRows(1000)
	defer b.Release()
	w, err := stoa.Create(ctx, name, b.Schema(), o)
	if err != nil {
		return err
	}
	defer w.Abort(ctx)
	if err := w.Write(ctx, b); err != nil {
		return err
	}
	_, err = w.Close(ctx)
	return err
}

// TestForeignTypedOptions: the options struct of another format, or for the other direction, is refused; a map of
// strings overrides a struct; invalid values are refused.
func TestForeignTypedOptions(t *testing.T) {
	name, typed := filepath.Join(t.TempDir(), "x.red"), redfile.WriteOptions{Compression: redfile.CompressGzip}
	if err := writeNumbers(name, stoa.CreateOptions{Typed: typed}); err != nil {
		t.Fatal(err)
	}
	err := writeNumbers(filepath.Join(t.TempDir(), "x.csv"), stoa.CreateOptions{Typed: typed})
	if !errors.Is(err, fault.Invalid) {
		t.Errorf("a CSV file: got %v, want an error of class Invalid", err)
	}
	for _, o := range []stoa.OpenOptions{{Typed: typed}, {Typed: redfile.ReadOptions{}, From: "csv"}} {
		if _, err := stoa.Open(t.Context(), name, o); !errors.Is(err, fault.Invalid) {
			t.Errorf("%T: got %v, want an error of class Invalid", o.Typed, err)
		}
	}
	tab, err := stoa.Open(t.Context(), name, stoa.OpenOptions{Typed: redfile.ReadOptions{NoIndex: true},
		Opts: map[string]string{"index": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	tab.Close()
	for _, v := range []redfile.WriteOptions{{Compression: "lzo"}, {PageSize: -1}} {
		if err := writeNumbers(name, stoa.CreateOptions{Typed: v}); !errors.Is(err, fault.Invalid) {
			t.Errorf("%+v: got %v, want an error of class Invalid", v, err)
		}
	}
}

// Options of a format can be a struct of its package; a map of strings, such as a command's flags, overrides it.
func Example_typedOptions() {
	dir, err := os.MkdirTemp("", "stoa")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "numbers.red")
	typed := redfile.WriteOptions{Compression: redfile.CompressGzip, RowGroupRows: 500, NoArrowSchema: true}
	fmt.Println(typed.Strings())
	if err := writeNumbers(name, stoa.CreateOptions{Typed: typed}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(writeNumbers(name, stoa.CreateOptions{Typed: typed, Opts: map[string]string{"compression": "lzo"}}))
	// Output:
	// map[arrow-schema:false compression:gzip row-group-rows:500]
	// invalid: redfile: option compression=lzo: expected one of snappy, gzip, none
}

// TestTypedOptionsOfChanger: Append and Open refuse the options struct of another format and invalid values; a map of
// strings overrides the struct.
func TestTypedOptionsOfChanger(t *testing.T) {
	ctx, place := t.Context(), filepath.Join(t.TempDir(), "t")
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil)
	if err := stoa.CreateTable(ctx, place, sc, stoa.CreateTableOptions{}, stoa.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	c, err := stoa.OpenChanger(ctx, place, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	none := func(func(arrow.RecordBatch, error) bool) {}
	for _, dry := range []bool{true, false} {
		for _, bad := range []stoa.AppendOptions{{Typed: redfile.WriteOptions{}},
			{Typed: carbon.WriteOptions{Version: 9}},
			{Typed: carbon.WriteOptions{Version: 3}, Opts: map[string]string{"version": "9"}}} {
			bad.DryRun = dry
			if _, err := c.Append(ctx, sc, none, bad); !errors.Is(err, fault.Invalid) {
				t.Errorf("%+v: got %v, want an error of class Invalid", bad, err)
			}
		}
	}
	if _, err := c.Open(ctx, stoa.OpenOptions{Typed: redfile.ReadOptions{}}); !errors.Is(err, fault.Invalid) {
		t.Errorf("reading: got %v, want an error of class Invalid", err)
	}
	b, err := c.Open(ctx, stoa.OpenOptions{Typed: carbon.ReadOptions{Positions: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if n := b.Schema().NumFields(); n != 3 {
		t.Errorf("got %d columns, want 3: id and the two of its position", n)
	}
}
