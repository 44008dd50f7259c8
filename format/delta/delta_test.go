package delta_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"

	"stoa/format/delta"
	"stoa/format/internal/lake/laketest"
	"stoa/store"
)

// TestGolden reads tables written by deltalake, and compares them with what deltalake read: checkpoints, removed files,
// partitions, an evolved schema, an old version. interop/lake/make.py made them.
func TestGolden(t *testing.T) {
	for _, c := range []struct{ table, at, want string }{{"parted", "", "parted"}, {"evolved", "", "evolved"},
		{"evolved", "0", "evolved-0"}} {
		opts := map[string]string{}
		if c.at != "" {
			opts["at"] = c.at
		}
		got := laketest.Open(t, delta.Format, "testdata/"+c.table, opts)
		laketest.Same(t, got, laketest.Open(t, delta.Format, "testdata/"+c.want+".arrow", nil))
	}
}

// extended returns a copy of a golden table with versions added to its log, one line each.
func extended(t *testing.T, table string, first int, versions ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/"+table)); err != nil {
		t.Fatal(err)
	}
	for i, line := range versions {
		name := filepath.Join(dir, "_delta_log", fmt.Sprintf("%020d.json", first+i))
		if err := os.WriteFile(name, []byte(line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestAddedAgain: a file that was removed and then added again, as by RESTORE, is in the table once.
func TestAddedAgain(t *testing.T) {
	text, err := os.ReadFile("testdata/evolved/_delta_log/00000000000000000002.json")
	if err != nil {
		t.Fatal(err)
	}
	var add, remove string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, `{"add":`) {
			add = strings.TrimSpace(line)
			_, rest, _ := strings.Cut(add, `"path":"`)
			name, _, _ := strings.Cut(rest, `"`)
			remove = `{"remove":{"path":"` + name + `","deletionTimestamp":1,"dataChange":true}}`
		}
	}
	dir := extended(t, "evolved", 3, remove, add)
	for _, c := range []struct{ at, want string }{{"2", "evolved"}, {"4", "evolved"}} {
		got := laketest.Open(t, delta.Format, dir, map[string]string{"at": c.at})
		laketest.Same(t, got, laketest.Open(t, delta.Format, "testdata/"+c.want+".arrow", nil))
	}
}

// TestNoTime: if a version does not record when it was committed, it is unknown which version was the newest at a time.
func TestNoTime(t *testing.T) {
	dir := extended(t, "evolved", 3, `{"remove":{"path":"none.parquet","dataChange":true}}`)
	o := stoa.OpenOptions{Formats: []format.Format{delta.Format}, Opts: map[string]string{"at": "2100-01-01"}}
	if _, err := stoa.Open(context.Background(), dir, o); !errors.Is(err, fault.Unsupported) {
		t.Errorf("%v, want an error: version 3 has no time", err)
	}
}

// placed returns a copy of a golden table. Where the log names the directory of the writer, it names the copy's.
func placed(t *testing.T, table string) string {
	t.Helper()
	dir := extended(t, table, 0)
	logs, err := filepath.Glob(filepath.Join(dir, "_delta_log", "*.json"))
	if err != nil || len(logs) == 0 {
		t.Fatal(logs, err)
	}
	for _, name := range logs {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s := strings.ReplaceAll(string(b), "/srv/lake/delta/"+table, filepath.ToSlash(dir))
		if err := os.WriteFile(name, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestVectors reads tables with deletion vectors, inline and in files named by UUIDs and by absolute paths, with column
// mapping by name and by id, and paths of data files that are absolute. interop/lake/vectors.py made them from the
// protocol's document.
func TestVectors(t *testing.T) {
	for k := range 3 {
		table := fmt.Sprintf("vectors%d", k)
		dir := placed(t, table)
		laketest.Views(t, delta.Format, dir, "testdata/"+table+".json")
		if got := verified(t, dir, format.Deep); len(got) > 0 {
			t.Errorf("%s: %q", table, got)
		}
	}
}

// TestVectorDamage: a vector that is gone, damaged or too long is damage, and no row of its file is returned.
func TestVectorDamage(t *testing.T) {
	const files = "*/deletion_vector_*.bin"
	damage := func(f func(b []byte) []byte) func(dir string) {
		return func(dir string) {
			names, _ := filepath.Glob(filepath.Join(dir, files))
			more, _ := filepath.Glob(filepath.Join(dir, filepath.Base(files)))
			if names = append(names, more...); len(names) == 0 {
				t.Fatal("no vectors")
			}
			for _, name := range names {
				b, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if b = f(b); b == nil {
					err = os.Remove(name)
				} else {
					err = os.WriteFile(name, b, 0o644)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, c := range []struct {
		want string
		do   func(dir string)
	}{
		{"not there", damage(func([]byte) []byte { return nil })},
		{"past the end", damage(func(b []byte) []byte { return b[:len(b)-5] })},
		{"computed", damage(func(b []byte) []byte { b[len(b)-9] ^= 1; return b })},
		{"462", damage(func(b []byte) []byte { // a size precedes each vector, after 1 or 20 bytes
			b[3], b[22] = b[3]^1, b[22]^1
			return b
		})},
	} {
		dir := placed(t, "vectors1")
		c.do(dir)
		if err := counted(t, dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: reading says %v", c.want, err)
		}
		if got := verified(t, dir, format.Sums); len(got) == 0 || !strings.Contains(got[0], c.want) {
			t.Errorf("%s: verify says %q", c.want, got)
		}
	}
}

// TestRefused: types and files that are not read are refused by name.
func TestRefused(t *testing.T) {
	text := func(kind, file string) string {
		return `{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["variantType"],` +
			`"writerFeatures":["variantType"]}}` + "\n" + `{"metaData":{"id":"a","format":{"provider":"parquet",` +
			`"options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"a\",\"type\":\"` + kind +
			`\",\"nullable\":true,\"metadata\":{}}]}","partitionColumns":[],"configuration":{}}}` + "\n" +
			`{"add":{"path":"` + file + `","partitionValues":{},"size":1,"modificationTime":1,` +
			`"dataChange":true}}` + "\n"
	}
	for _, c := range []struct{ log, want string }{{text("variant", "a.parquet"), `"variant"`},
		{text("long", "../a.parquet"), "outside of"}, {text("long", "s3://b/a.parquet"), "outside of"},
		{text("long", "file:/a.parquet"), "outside of"}, {text("long", "%2e%2e/a.parquet"), "outside of"}} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "_delta_log"), 0o755); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, "_delta_log", "00000000000000000000.json")
		if err := os.WriteFile(name, []byte(c.log), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := stoa.Open(context.Background(), dir, stoa.OpenOptions{Formats: []format.Format{delta.Format}})
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
}

// TestNotChanged: tables that ask more of writers than stoa does are not changed.
func TestNotChanged(t *testing.T) {
	const protocol = `"protocol":{"minReaderVersion":1,"minWriterVersion":2}`
	for _, c := range []struct{ protocol, configuration, field, want string }{
		{protocol, `"delta.appendOnly":"true"`, ``, "append-only"},
		{protocol, `"delta.enableChangeDataFeed":"true"`, ``, "change data feed"},
		{protocol, `"delta.constraints.c":"a > 0"`, ``, "delta.constraints.c"},
		{protocol, ``, `\"delta.invariants\":\"{}\"`, "delta.invariants"},
		{`"protocol":{"minReaderVersion":1,"minWriterVersion":4}`, ``, ``, "found 4"},
		{`"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":[],"writerFeatures":["rowTracking"]}`,
			``, ``, "rowTracking"}} {
		dir := t.TempDir()
		text := "{" + c.protocol + "}\n" + `{"metaData":{"id":"a","format":{"provider":"parquet","options":{}},` +
			`"schemaString":"{\"type\":\"struct\",\"fields\":[{\"name\":\"a\",\"type\":\"long\",\"nullable\":true,` +
			`\"metadata\":{` + c.field + `}}]}","partitionColumns":[],"configuration":{` + c.configuration + "}}}\n"
		name := filepath.Join(dir, "_delta_log", "00000000000000000000.json")
		err := os.Mkdir(filepath.Dir(name), 0o755)
		if err = errors.Join(err, os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		_, err = delta.OpenChange(t.Context(), store.Local{}, dir, nil, format.WriteOptions{}, 0)
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want a refusal because of %s, got %v", c.want, err)
		}
	}
}
