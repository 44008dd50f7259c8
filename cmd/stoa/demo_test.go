package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"

	"stoa/cmd/stoa/internal/about"
	"stoa/cmd/stoa/internal/cli"
)

// TestDemoSamples: demo.br holds the golden files, byte for byte. `go test ./cmd/stoa -run TestDemoSamples
// -update` writes it.
func TestDemoSamples(t *testing.T) {
	want := map[string][]byte{}
	var order []string
	for _, s := range about.Samples {
		root := filepath.Join("..", "..", filepath.FromSlash(s.From))
		err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(root, p)
			name := path.Join(s.To, filepath.ToSlash(rel))
			b, err := os.ReadFile(p)
			want[name] = b
			order = append(order, name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		var all []byte
		for _, n := range order {
			all = append(fmt.Appendf(all, "%d %s\n", len(want[n]), n), want[n]...)
		}
		about.Demo = packed(t, all)
		if err := os.WriteFile("internal/about/demo.br", about.Demo, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(about.Demo) > 1<<20 {
		t.Errorf("demo.br: got %d bytes, want at most 1 MiB", len(about.Demo))
	}
	for name, b := range about.DemoFiles() {
		if want[name] == nil || !bytes.Equal(b, want[name]) {
			t.Errorf("%s differs from the golden file", name)
		}
		delete(want, name)
	}
	for n := range want {
		t.Errorf("%s is not in demo.br; -update writes it", n)
	}
}

// packed compresses bytes that the program holds.
func packed(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := brotli.NewWriterLevel(&out, brotli.BestCompression)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestDemo: every command that demo prints exits with the documented status.
func TestDemo(t *testing.T) {
	t.Chdir(t.TempDir())
	stoa := func(command string) (int, string, string) {
		var out, errs bytes.Buffer
		args := strings.Fields(command)[1:]
		for i := 0; i < len(args); i++ { // joins quoted words
			if strings.HasPrefix(args[i], `"`) {
				for !strings.HasSuffix(args[i], `"`) {
					args[i] += " " + args[i+1]
					args = append(args[:i+1], args[i+2:]...)
				}
				args[i] = strings.Trim(args[i], `"`)
			}
		}
		st := run(context.Background(), args, strings.NewReader(""), &out, &errs)
		return st, out.String(), errs.String()
	}
	st, text, errs := stoa("stoa demo try --damage")
	if st != 0 {
		t.Fatal(errs)
	}
	printed := 0
	for _, l := range strings.Split(text, "\n") {
		if !strings.HasPrefix(l, "  stoa ") {
			continue
		}
		want := -1
		for _, x := range append(append([]about.Trial{}, about.Trials...), about.DamagedTrials...) {
			if x.Command("try") == strings.TrimSpace(l) {
				want = x.Status
			}
		}
		st, out, errs := stoa(strings.TrimSpace(l))
		if st != want || len(out)+len(errs) == 0 {
			t.Errorf("%s: got status %d, want %d and output\n%s%s", l, st, want, out, errs)
		}
		printed++
	}
	if printed != 10 {
		t.Errorf("got %d commands printed, want 10", printed)
	}
	for _, h := range about.Harms {
		if st, out, _ := stoa("stoa verify try/" + h.To); st != cli.StatusDamage {
			t.Errorf("%s: got status %d, want %d\n%s", h.To, st, cli.StatusDamage, out)
		}
	}
	if st, out, errs := stoa("stoa verify --deep try/kudu try/carbon try/key.cfile try/flat.red " +
		"try/primitives.trv try/dremel.trv"); st != 0 {
		t.Errorf("the samples: got status %d, want 0\n%s%s", st, out, errs)
	}
	if st, _, errs := stoa("stoa demo try"); st != cli.StatusUse || !strings.Contains(errs, "not empty") {
		t.Errorf("a second time: got status %d, want %d: %s", st, cli.StatusUse, errs)
	}
}
