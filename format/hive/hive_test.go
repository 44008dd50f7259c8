package hive_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/hive"
	"stoa/pred"
)

func formats() []format.Format {
	probe := func(ctx context.Context, tg format.Target) (*format.Format, error) {
		return stoa.Probe(ctx, tg, stoa.OpenOptions{Formats: stoa.Formats})
	}
	return append(slices.Clone(stoa.Formats), hive.New(stoa.Formats, probe))
}

func open(t *testing.T, name string, opts map[string]string) (*stoa.Table, error) {
	t.Helper()
	table, err := stoa.Open(context.Background(), name, stoa.OpenOptions{Formats: formats(), Opts: opts})
	if err == nil {
		t.Cleanup(func() { table.Close() })
	}
	return table, err
}

// rows returns the rows of a table, sorted, with the columns in the order named.
func rows(t *testing.T, table *stoa.Table, where string, columns ...string) (out []string) {
	t.Helper()
	spec := stoa.ScanSpec{Columns: columns}
	if where != "" {
		var err error
		if spec.Filter, err = pred.Parse(where); err != nil {
			t.Fatal(err)
		}
	}
	for b, err := range table.Scan(context.Background(), spec) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			var cells []string
			for c := range int(b.NumCols()) {
				cells = append(cells, b.Column(c).ValueStr(i))
			}
			out = append(out, strings.Join(cells, " "))
		}
	}
	slices.Sort(out)
	return out
}

// expected are the rows that interop/lake/make.py gave to pyarrow, by their formula.
func expected(keep func(i int) bool) (out []string) {
	for i := range 12 {
		if keep(i) {
			region := []string{"a/b", "eu", "(null)"}[i%3]
			out = append(out, fmt.Sprintf("%d %d %s %v", i, 2023+i%2, region, float64(i)/2))
		}
	}
	slices.Sort(out)
	return out
}

// TestPyarrow reads directories that pyarrow wrote, with the values of the directories as columns, and filters them.
func TestPyarrow(t *testing.T) {
	for _, kind := range []string{"parquet", "csv", "ipc"} {
		table, err := open(t, "testdata/"+kind, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := table.Schema().Field(2).Type.String(); got != "int64" {
			t.Errorf("%s: y is %s, want int64", kind, got)
		}
		for where, keep := range map[string]func(i int) bool{
			"":                             func(int) bool { return true },
			"y = 2024":                     func(i int) bool { return i%2 == 1 },
			"region = 'a/b' and id > 3":    func(i int) bool { return i%3 == 0 && i > 3 },
			"region is null and y <> 2023": func(i int) bool { return i%3 == 2 && i%2 == 1 },
			"y > 2024":                     func(int) bool { return false },
		} {
			got, want := rows(t, table, where, "id", "y", "region", "v"), expected(keep)
			if !slices.Equal(got, want) {
				t.Errorf("%s %q: %v, want %v", kind, where, got, want)
			}
		}
	}
}

// put writes files of a directory.
func put(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestTypes: a column of directories has the type of all its texts, or the type that is given.
func TestTypes(t *testing.T) {
	for _, c := range []struct {
		texts []string
		given string
		want  string
	}{
		{[]string{"1", "-20"}, "", "int64"},
		{[]string{"1", "__HIVE_DEFAULT_PARTITION__"}, "", "int64"},
		{[]string{"1", "007"}, "", "utf8"}, // 7 would be another text
		{[]string{"1.5", "2.25"}, "", "float64"},
		{[]string{"1.10", "1.5"}, "", "utf8"}, // a version
		{[]string{"2024-02-29", "2023-01-01"}, "", "date32"},
		{[]string{"2023-02-29"}, "", "utf8"},
		{[]string{"2024-02-29 12%3A00%3A00"}, "", "timestamp[us]"},
		{[]string{"9223372036854775808"}, "", "utf8"},
		{[]string{"1", "2"}, "k: int16", "int16"},
	} {
		files := map[string]string{}
		for _, s := range c.texts {
			files["k="+s+"/a.jsonl"] = `{"v":1}` + "\n"
		}
		opts := map[string]string{}
		if c.given != "" {
			opts["partition-types"] = c.given
		}
		table, err := open(t, put(t, files), opts)
		if err != nil {
			t.Errorf("%v: %v", c.texts, err)
			continue
		}
		if got := table.Schema().Field(1).Type.String(); got != c.want {
			t.Errorf("%v: %s, want %s", c.texts, got, c.want)
		}
	}
}

// TestNotOneTable: what is not one table is refused, with the files that differ.
func TestNotOneTable(t *testing.T) {
	const row = `{"v":1}` + "\n"
	for want, files := range map[string]map[string]string{
		`"b"`:                   {"a=1/x.jsonl": row, "b=1/y.jsonl": row},
		`"a/b"`:                 {"a=1/x.jsonl": row, "a=1/b=1/y.jsonl": row},
		"y.csv is csv":          {"a=1/x.jsonl": row, "a=2/y.csv": "v\n1\n"},
		"column v of":           {"a=1/x.jsonl": row, "a=2/y.jsonl": `{"v":"s"}` + "\n"},
		"two directories say":   {"a=1/a=2/x.jsonl": row},
		`expected a value of t`: {"a=x/x.jsonl": row},
	} {
		opts := map[string]string{}
		if strings.HasPrefix(want, "expected") {
			opts["partition-types"] = "a: int32"
		}
		_, err := open(t, put(t, files), opts)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", files, err, want)
		}
	}
}

// TestStray: hidden files are not looked at, others of no format are left out with a note, and columns that a file
// lacks are null.
func TestStray(t *testing.T) {
	dir := put(t, map[string]string{"a=1/x.jsonl": `{"v":1}` + "\n", "a=2/deep/y.jsonl": `{"v":2,"w":3}` + "\n",
		"a=2/_SUCCESS": "", "a=2/.y.crc": "x", "a=2/_temporary/z.jsonl": `{"v":9}` + "\n", "a=1/odd.bin": "\x00\x01zz"})
	table, err := open(t, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"1 1 (null)", "2 2 3"}
	if got := rows(t, table, "", "a", "v", "w"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	found := table.Findings()
	if len(found) != 1 || !strings.HasSuffix(found[0].At.Object, "odd.bin") {
		t.Errorf("%v, want one finding about odd.bin", found)
	}
}

// TestDamage: a damaged file fails a scan with its name, verify reports it, and recovery reads the others.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/parquet")); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "y=2024", "region=eu", "*.parquet"))
	if len(names) != 1 {
		t.Fatal(names)
	}
	if err := os.WriteFile(names[0], []byte("PAR1 and nothing else PAR1"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, dir, nil); !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), names[0]) {
		t.Errorf("%v, want damage of %s", err, names[0])
	}
	o := stoa.OpenOptions{Formats: formats()}
	named := 0
	for f, err := range stoa.Verify(context.Background(), dir, o) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(f.At.Object, names[0]) {
			named++
		}
	}
	if named == 0 {
		t.Error("verify did not report the file")
	}
	o.Recover = true
	table, err := stoa.Open(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	want := expected(func(i int) bool { return i%2 == 0 || i%3 != 1 })
	if got := rows(t, table, "", "id", "y", "region", "v"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if len(table.Findings()) == 0 {
		t.Error("recovery does not report the lost file")
	}
}
