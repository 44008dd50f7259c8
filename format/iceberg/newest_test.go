package iceberg_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/iceberg"
	"stoa/store"
)

// named writes the first states of a table that pyiceberg wrote with other names: the first own of them as the
// directory has them, v1, v2, …, and the others as a catalogue, which begins with 00000 again. log says whether the
// metadata name those before them.
func named(t *testing.T, from string, states []string, own int, log bool) (dir string) {
	t.Helper()
	dir = t.TempDir()
	err := os.CopyFS(dir, os.DirFS(from))
	for _, name := range states {
		err = errors.Join(err, os.Remove(filepath.Join(dir, "metadata", filepath.Base(name))))
	}
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, name := range states {
		as := fmt.Sprintf("v%d.metadata.json", i+1)
		if i >= own {
			as = fmt.Sprintf("%05d%s", i-own, filepath.Base(name)[5:])
		}
		names = append(names, filepath.Base(name), as)
	}
	empty := regexp.MustCompile(`"metadata-log":\[[^\]]*\]`)
	for i, name := range states {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(names...).Replace(string(b))
		if !log {
			text = empty.ReplaceAllString(text, `"metadata-log":[]`)
			if strings.Contains(text, `"metadata-log":[{`) {
				t.Fatal("the log is still there")
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "metadata", names[2*i+1]), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestNewestMetadata: of the metadata that pyiceberg has written, whichever of them the directory names and whichever a
// catalogue, with a hint or without, the last are read.
func TestNewestMetadata(t *testing.T) {
	for _, table := range []string{"testdata/evolved", "testdata/parted"} {
		states, err := filepath.Glob(table + "/metadata/*.metadata.json")
		if err != nil || len(states) < 4 {
			t.Fatal(states, err)
		}
		for n := 1; n <= len(states); n++ {
			want, err := rowsOf(states[n-1])
			if err != nil {
				t.Fatal(err)
			}
			for own := range n + 1 {
				if own == n && n < len(states) {
					continue // then lists of later snapshots show that metadata are missing
				}
				for k := range 4 {
					if testing.Short() && (n+own+k)%3 > 0 {
						continue
					}
					dir := named(t, table, states[:n], own, k%2 > 0)
					what := fmt.Sprintf("%s, %d states, %d own, log %t, hint %t", table, n, own, k%2 > 0, k > 1)
					for _, name := range states[n:] {
						if err := os.Remove(filepath.Join(dir, "metadata", filepath.Base(name))); err != nil {
							t.Fatal(err)
						}
					}
					if k > 1 {
						hint := filepath.Join(dir, "metadata", "version-hint.text")
						if err := os.WriteFile(hint, []byte(fmt.Sprint(own)), 0o666); err != nil {
							t.Fatal(err)
						}
					}
					if got, err := rowsOf(dir); err != nil || got != want {
						t.Errorf("%s: got %s, want %s; %v", what, got, want, err)
					}
				}
			}
		}
	}
}

// TestTwoNewestMetadata: of two files with the same number, only a catalogue knows which was committed: both are named,
// and none is read. If both have the same rows, it does not matter.
func TestTwoNewestMetadata(t *testing.T) {
	for _, table := range []string{"testdata/evolved", "testdata/parted"} {
		states, err := filepath.Glob(table + "/metadata/*.metadata.json")
		if err != nil {
			t.Fatal(err)
		}
		last := len(states) - 1
		for i, state := range states {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(table)); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(state)
			if err != nil {
				t.Fatal(err)
			}
			other := fmt.Sprintf("%05d-0c3b5d6e-7f80-4a1b-9c2d-3e4f5a6b7c8d.metadata.json", last)
			if err := os.WriteFile(filepath.Join(dir, "metadata", other), b, 0o666); err != nil {
				t.Fatal(err)
			}
			want, err := rowsOf(states[last])
			if err != nil {
				t.Fatal(err)
			}
			was, err := rowsOf(state)
			if err != nil {
				t.Fatal(err)
			}
			switch got, err := rowsOf(dir); {
			case i == last && (err != nil || got != want):
				t.Errorf("%s, a copy: got %s, want %s; %v", table, got, want, err)
			case was != want && (!errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), other) ||
				!strings.Contains(err.Error(), filepath.Base(states[last]))):
				t.Errorf("%s, state %d: %v", table, i, err)
			}
		}
	}
}

// TestCompressedMetadata: metadata that are compressed, under either name of them, are read like plain ones, also if
// the hint names them. What cannot be decompressed is damage, and not more is decompressed than metadata may have.
func TestCompressedMetadata(t *testing.T) {
	states, err := filepath.Glob("testdata/evolved/metadata/*.metadata.json")
	if err != nil || len(states) < 4 {
		t.Fatal(states, err)
	}
	want, err := rowsOf("testdata/evolved")
	if err != nil {
		t.Fatal(err)
	}
	packed := func(b []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		if _, err := z.Write(b); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	for _, suffix := range []string{".gz.metadata.json", ".metadata.json.gz"} {
		for _, own := range []int{0, 2, len(states)} {
			dir := named(t, "testdata/evolved", states, own, false)
			files, err := filepath.Glob(filepath.Join(dir, "metadata", "*.metadata.json"))
			if err != nil {
				t.Fatal(err)
			}
			last := ""
			for _, name := range files {
				b, err := os.ReadFile(name)
				last = strings.TrimSuffix(name, ".metadata.json") + suffix
				if err = errors.Join(err, os.Remove(name), os.WriteFile(last, packed(b), 0o666)); err != nil {
					t.Fatal(err)
				}
			}
			what := fmt.Sprintf("%s, %d of %d of the directory's own", suffix, own, len(states))
			if got, err := rowsOf(dir); err != nil || got != want {
				t.Errorf("%s: got %.200s, %v, want %.200s", what, got, err, want)
			}
			if got, err := rowsOf(last); own == len(states) && (err != nil || got != want) {
				t.Errorf("%s: named: got %.200s, %v, want %.200s", what, got, err, want)
			}
			if own < len(states) {
				continue
			}
			hint := filepath.Join(dir, "metadata", "version-hint.text")
			if err := os.WriteFile(hint, []byte(fmt.Sprint(own)), 0o666); err != nil {
				t.Fatal(err)
			}
			if got, err := rowsOf(dir); err != nil || got != want {
				t.Errorf("%s, with a hint: got %.200s, %v, want %.200s", what, got, err, want)
			}
			whole, err := os.ReadFile(last)
			if err != nil {
				t.Fatal(err)
			}
			for wrong, c := range map[string]struct {
				b    []byte
				kind error
			}{"cut": {whole[:len(whole)/2], fault.Corrupt}, "endless": {packed(make([]byte, 1<<20)), fault.Limit}} {
				if err := os.WriteFile(last, c.b, 0o666); err != nil {
					t.Fatal(err)
				}
				table, err := stoa.Open(t.Context(), last, stoa.OpenOptions{
					Formats: []format.Format{iceberg.Format}, Limits: format.Limits{Metadata: 1 << 16}})
				if !errors.Is(err, c.kind) {
					t.Errorf("%s, %s: got %v, %v, want %v", what, wrong, table, err, c.kind)
				}
			}
		}
	}
}

// TestNamedMetadata: a metadata file that is named is the table, wherever in it its version is.
func TestNamedMetadata(t *testing.T) {
	states, err := filepath.Glob("testdata/evolved/metadata/*.metadata.json")
	if err != nil || len(states) == 0 {
		t.Fatal(states, err)
	}
	want, err := rowsOf("testdata/evolved")
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []int{0, len(states)} {
		dir := named(t, "testdata/evolved", states, own, true)
		files, err := filepath.Glob(filepath.Join(dir, "metadata", "*.metadata.json"))
		if err != nil {
			t.Fatal(err)
		}
		last := files[len(files)-1]
		b, err := os.ReadFile(last)
		if err != nil {
			t.Fatal(err)
		}
		version := regexp.MustCompile(`"format-version": *[0-9],`).Find(b)
		if version == nil {
			version = regexp.MustCompile(`, *"format-version": *[0-9]`).Find(b)
		}
		text := strings.Replace(string(b), string(version), "", 1)
		end := strings.LastIndex(text, "}")
		text = text[:end] + ", " + strings.Trim(string(version), ", ") + "}"
		if err := os.WriteFile(last, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := stoa.Probe(t.Context(), format.Target{Tree: store.Local{}, Name: last},
			stoa.OpenOptions{Formats: append(slices.Clone(stoa.Formats), iceberg.Format)})
		if err != nil || f.Name != iceberg.Format.Name {
			t.Errorf("%s: got format %s, %v", filepath.Base(last), f.Name, err)
		}
		if got, err := rowsOf(last); err != nil || got != want {
			t.Errorf("%s: got %.200s, %v, want %.200s", filepath.Base(last), got, err, want)
		}
	}
}
