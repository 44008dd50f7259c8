package option_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/option"
)

type codec string

type column struct {
	Codec codec
	Keep  *bool
}

type options struct {
	All     column
	Columns map[string]column
	NoCRC   bool
	Deep    bool
	Rows    int64
	Sync    int
	Digits  *int
	Names   []string
	File    string
}

var table = option.Table[options]{Format: "toy", For: "writing", Options: append(option.OfColumns(
	[]option.Option[column]{
		option.Pick("codec", "compression", func(o *column) *codec { return &o.Codec }, "null", "snappy"),
		option.Tri("keep", "keep it", func(o *column) **bool { return &o.Keep }),
	}, func(o *options) *column { return &o.All }, func(o *options) *map[string]column { return &o.Columns }),
	option.Not("crc", "checksums", func(o *options) *bool { return &o.NoCRC }),
	option.Bool("deep", "deep", func(o *options) *bool { return &o.Deep }),
	option.Int("rows", "N", "rows", func(o *options) *int64 { return &o.Rows }, 1, 1000),
	option.Size("sync", "sync", func(o *options) *int { return &o.Sync }, 0, 1<<20),
	option.IntAt("digits", "0…38", "digits", func(o *options) **int { return &o.Digits }, 0, 38),
	option.List("names", "NAME,NAME,…", "names", func(o *options) *[]string { return &o.Names }),
	option.Text("file", "FILE", "file", func(o *options) *string { return &o.File }),
)}

func TestTable(t *testing.T) {
	formattest.Options(t, &table)
}

func TestParse(t *testing.T) {
	o, err := table.Parse(map[string]string{"codec": "NULL", "codec.a.b": "snappy", "keep.a.b": "false", "crc": "false",
		"deep": "true", "rows": "7", "sync": "0", "digits": "0", "names": `a, "b,""c",d e`, "file": "f"})
	if err != nil {
		t.Fatal(err)
	}
	ab := o.Columns["a.b"]
	if o.All.Codec != "null" || ab.Codec != "snappy" || ab.Keep == nil || *ab.Keep || !o.NoCRC || !o.Deep ||
		o.Rows != 7 || o.Sync != -1 || o.Digits == nil || *o.Digits != 0 || o.File != "f" ||
		!slices.Equal(o.Names, []string{"a", `b,"c`, "d e"}) {
		t.Errorf("%+v", o)
	}
	for key, values := range map[string][]string{"codec": {"", "lz4"}, "codec.": {"null"}, "crc": {"", "yes"},
		"crc.x": {"true"}, "rows": {"", "0", "1001", "-1", "x", "1k"}, "sync": {"-1", "2MiB", "1 K"},
		"digits": {"39", "-1"}, "names": {`"a`, `"a"b`}, "other": {"1"}, "": {""}} {
		for _, v := range values {
			if _, err := table.Parse(map[string]string{key: v}); !errors.Is(err, fault.Invalid) {
				t.Errorf("%s=%s: %v, expected an error of class Invalid", key, v, err)
			}
		}
	}
}

func TestKeys(t *testing.T) {
	var names []string
	for _, k := range table.Keys() {
		names = append(names, k.Name)
		if k == (format.OptionKey{}) || k.Values == "" || k.Help == "" {
			t.Errorf("%+v", k)
		}
	}
	want := []string{"codec", "keep", "crc", "deep", "rows", "sync", "digits", "names", "file"}
	if !slices.Equal(names, want) {
		t.Errorf("%v, expected %v", names, want)
	}
}

func TestOr(t *testing.T) {
	if got := [3]int{option.Or(0, 16), option.Or(-1, 16), option.Or(3, 16)}; got != [3]int{16, 0, 3} {
		t.Errorf("%v, expected the default, 0 and the number", got)
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", "a", "a,b", `"a,b",c`, `""`, `"a""b"`, " a", ","} {
		f.Add(s, s+"x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, names := range [][]string{{a}, {a, b}, {b, a, a}} {
			if got, wanted := option.Split(option.Join(names)); wanted != "" || !slices.Equal(got, names) {
				t.Errorf("%q comes back as %q, %s", names, got, wanted)
			}
		}
	})
}

func ExampleTable() {
	o, err := table.Parse(map[string]string{"codec": "snappy", "crc": "false", "names": "id,at"})
	fmt.Println(o.All.Codec, o.NoCRC, o.Names, err)
	fmt.Println(table.Strings(&o))
	_, err = table.Parse(map[string]string{"codec": "lzo"})
	fmt.Println(err)
	// Output:
	// snappy true [id at] <nil>
	// map[codec:snappy crc:false names:id,at]
	// invalid: toy: option codec=lzo: expected one of null, snappy
}
