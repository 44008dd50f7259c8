package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/config"
	"stoa/store/remote/remotetest"
)

// TestCompletion: what a shell offers for a word: tables, columns, options and their values, named places, objects.
func TestCompletion(t *testing.T) {
	t.Chdir(t.TempDir())
	if st := run(context.Background(), []string{"demo", "try"}, nil, io.Discard, io.Discard); st != 0 {
		t.Fatal("demo")
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	toml := "[places]\nhere = \"" + filepath.Join(dir, "try") + "\"\nlake = \"s3://bucket/in\"\n"
	if err := os.WriteFile("my.toml", []byte(toml), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(config.Variable, "my.toml")
	stores := t.TempDir()
	if err := os.CopyFS(filepath.Join(stores, "bucket", "in", "copy"), os.DirFS("try")); err != nil {
		t.Fatal(err)
	}
	asS3(t, &remotetest.S3{Dir: stores})
	columns := []string{"i", "l", "f", "d", "s", "oi", "os", "ri"}
	for _, c := range []struct {
		words []string // the last one is completed
		want  []string // some of what is offered; none: nothing is
	}{
		{[]string{"head", "try#"}, []string{"try#d_major"}},
		{[]string{"head", "try/kudu#d"}, []string{"try/kudu#d_major"}},
		{[]string{"delete", "try/carbon#"}, []string{"try/carbon#managed_del"}},
		{[]string{"head", "place://"}, []string{"place://here", "place://lake"}},
		{[]string{"head", "place://here/"}, []string{"place://here/kudu/", "place://here/flat.red"}},
		{[]string{"head", "place://here/kudu#"}, []string{"place://here/kudu#d_major"}},
		{[]string{"head", "place://nowhere/"}, nil},
		{[]string{"head", "s3://bucket/in/copy/f"}, []string{"s3://bucket/in/copy/flat.red"}},
		{[]string{"head", "s3://bucket/in/"}, []string{"s3://bucket/in/copy/"}},
		{[]string{"head", "s3://bucket/in/copy/kudu#"}, []string{"s3://bucket/in/copy/kudu#d_major"}},
		{[]string{"head", "place://lake/copy/kudu#"}, []string{"place://lake/copy/kudu#d_major"}},
		{[]string{"head", "s3://nobucket/"}, nil},
		{[]string{"head", "try/fl"}, nil}, // the shell completes files
		{[]string{"head", "try/flat.red", "-c", ""}, columns[:5]},
		{[]string{"head", "place://here/flat.red", "-c", "i,"}, []string{"i,l", "i,d"}},
		{[]string{"head", "s3://bucket/in/copy/flat.red", "-c", ""}, columns[:5]},
		{[]string{"head", "try/flat.red", "-w", "i > 3 and l"}, []string{"i > 3 and l", "i > 3 and oi"}},
		{[]string{"head", "try/flat.red", "-w", "s = 'a "}, nil},
		{[]string{"head", "no-such-file", "-w", ""}, nil},
		{[]string{"update", "try/carbon#managed_del", "--set", ""}, []string{"id=", "name=", "v="}},
		{[]string{"convert", "try/flat.red", "-o", "x.parquet", "--opt", "comp"}, []string{"compression="}},
		{[]string{"convert", "try/flat.red", "--to", "parquet", "--opt", "compression="},
			[]string{"compression=zstd", "compression=none"}},
		{[]string{"convert", "try/flat.red", "--to", "parquet", "--opt", "level="}, nil},
		{[]string{"cat", "try/key.cfile", "--source-opt", ""}, []string{"schema="}},
		{[]string{"help", "ver"}, []string{"verify\t", "predicates"}},
		{[]string{"schema", "-f", "ddl", "--dialect", ""}, []string{"spark", "duckdb"}},
		{[]string{"cat", "--damaged", ""}, []string{"skip-rows", "null-cells"}},
		{[]string{"convert", "--to", ""}, []string{"parquet", "cfile"}},
		{[]string{"finding", ""}, []string{"cfile.block.checksum"}},
	} {
		var out, errs bytes.Buffer
		a := cli.NewApp(nil, &out, &errs)
		a.UserConfig = true
		if st := runArgs(a, context.Background(), append([]string{"__complete"}, c.words...)); st != 0 {
			t.Errorf("%q: status %d, %s", c.words, st, &errs)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		offered := lines[:len(lines)-1] // the last line is for the shell's script
		for _, w := range c.want {
			if !slices.ContainsFunc(offered, func(o string) bool { return o == w || strings.HasPrefix(w, o+"\t") }) &&
				!slices.ContainsFunc(offered, func(o string) bool { return strings.HasPrefix(o, w) }) {
				t.Errorf("%q: got %q, want %q among them", c.words, offered, w)
			}
		}
		if c.want == nil && len(offered) > 0 {
			t.Errorf("%q: got %q, want nothing", c.words, offered)
		}
	}
}
