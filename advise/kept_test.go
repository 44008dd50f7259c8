package advise

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa"

	"stoa/store"
)

// TestAdviceKeeps: properties of a table besides its rows, such as Bloom filters, an order or encryption, are kept in
// output written with the advice; if that is impossible, the advice reports it.
func TestAdviceKeeps(t *testing.T) {
	rows := adviseRows(3000)
	defer rows.Release()
	dir := t.TempDir()
	key := strings.Repeat("ab", 16)
	whole, named := filepath.Join(dir, "whole"), filepath.Join(dir, "named")
	for file, text := range map[string]string{whole: "footer " + key + "\nkey k " + key + "\n",
		named: "key k " + key + "\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		opts       map[string]string
		keys, lost string // the key file for reading it; an option that is given up
	}{
		{map[string]string{}, "", ""},
		{map[string]string{"bloom": "key,list.list.element", "sorting-columns": "key"}, "", ""},
		{map[string]string{"sorting-columns": "key", "row-group-rows": "1000"}, "", ""},
		{map[string]string{"sorting-columns": "key", "row-group-rows": "700"}, "", ""},
		{map[string]string{"key-file": whole, "plain-columns": "word", "plain-footer": "true"}, whole, ""},
		{map[string]string{"key-file": whole, "encryption": "gcm-ctr", "bloom": "word"}, whole, ""},
		{map[string]string{"key-file": whole, "bloom": "word"}, named, "key-file"},
	} {
		tree := store.NewMemory(nil)
		write := func(name string, opts map[string]string) {
			t.Helper()
			w, err := stoa.Create(t.Context(), name, rows.Schema(),
				stoa.CreateOptions{To: "parquet", Opts: opts, Sink: tree.Sink(name)})
			if err == nil {
				if err = w.Write(t.Context(), rows); err == nil {
					_, err = w.Close(t.Context())
				}
			}
			if err != nil {
				t.Fatal(opts, err)
			}
		}
		kept := func(name string) map[string]string {
			t.Helper()
			o := stoa.OpenOptions{Tree: tree}
			if c.keys != "" && name == "src" {
				o.Opts = map[string]string{"key-file": c.keys}
			} else if c.keys != "" && c.lost == "" {
				o.Opts = map[string]string{"key-file": whole}
			}
			src, err := stoa.Open(t.Context(), name, o)
			if err != nil {
				t.Fatal(c, name, err)
			}
			defer src.Close()
			if name != "src" {
				return src.KeptBy()
			}
			a, err := Of(t.Context(), src, Options{Rows: 100})
			if err != nil {
				t.Fatal(c, err)
			}
			if _, lost := a.Lost["key-file"]; lost != (c.lost != "") || len(a.Lost) > 0 && c.lost == "" {
				t.Errorf("%v: given up: %v", c.opts, a.Lost)
			}
			opts := maps.Clone(a.Kept)
			maps.Copy(opts, a.Trials[0].Opts)
			write("out", opts)
			return a.Kept
		}
		with := maps.Clone(c.opts)
		with["compression"] = "none"
		write("src", with)
		want := kept("src")
		got := kept("out")
		if !maps.Equal(got, want) {
			t.Errorf("%v: the output has %v, the table %v", c.opts, got, want)
		}
		for _, k := range []string{"bloom", "sorting-columns", "key-file", "encryption", "plain-columns"} {
			if c.lost != k && want[k] != c.opts[k] {
				t.Errorf("%v: %s=%s is kept", c.opts, k, want[k])
			}
		}
	}
}
