//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/cli"
)

// oddKinds make things other than regular files. Opening or following them without care blocks, or reads, forever.
var oddKinds = map[string]func(name string) error{
	"pipe":   func(name string) error { return syscall.Mkfifo(name, 0o644) },
	"device": func(name string) error { return os.Symlink("/dev/zero", name) },
	"loop":   func(name string) error { return os.Symlink(filepath.Base(name), name) },
	"broken": func(name string) error { return os.Symlink("nowhere", name) },
}

// verbsOver are verbs over a directory, each with the flags that it needs.
var verbsOver = []string{"cat", "count", "ls", "schema", "meta", "stats", "head", "tail", "explain", "plan", "advise",
	"describe", "verify --quick", "verify", "verify --deep",
	"cat --damaged skip-rows", "recover -o OUT.arrow", "convert -o OUT.arrow", "convert --all -o OUT/"}

// runOver runs a verb over a source, and fails the test if it does not terminate.
func runOver(t *testing.T, verb, source string) (st int, out string) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "out")
	args := append(strings.Fields(strings.ReplaceAll(verb, "OUT", to)), source)
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	var b bytes.Buffer
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, args, strings.NewReader(""), &b, &b) }()
	select {
	case st = <-ended:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s: not finished after 30 s", verb)
	}
	if ctx.Err() != nil {
		t.Fatalf("%s: finished only after its context was cancelled: %s", verb, b.String())
	}
	return st, b.String()
}

// TestOddSiblings: irregular files in a directory, and files of no format, are reported as such and change nothing
// else.
func TestOddSiblings(t *testing.T) {
	for name, make := range map[string]func(*testing.T, string){
		"files": func(t *testing.T, dir string) {
			copyDir(t, "../../corpus/redfile/red1", dir)
			keepOnly(t, dir, "flat_pages.red")
		},
		"cfile":   converted("cfile"),
		"redfile": converted("redfile", "split=row-group", "row-group-rows=2"),
		"carbon":  carbonSample("managed_del"),
		"kudu":    kuduSample,
	} {
		t.Run(name, func(t *testing.T) {
			clean, dirty := filepath.Join(t.TempDir(), "t"), filepath.Join(t.TempDir(), "t")
			make(t, clean)
			make(t, dirty)
			if err := os.WriteFile(filepath.Join(dirty, "README.md"), []byte("# what this is\n\nrows\n"),
				0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dirty, "empty"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			for kind, odd := range oddKinds {
				if err := odd(filepath.Join(dirty, "z_"+kind)); err != nil {
					t.Fatal(err)
				}
			}
			for _, verb := range verbsOver {
				was, _ := runOver(t, verb, clean)
				st, out := runOver(t, verb, dirty)
				if st != was {
					t.Errorf("%s: got status %d, want %d, as without them: %s", verb, st, was, out)
				}
				reports := strings.HasPrefix(verb, "verify") || verb == "ls" && name == "files"
				for _, s := range []string{"README.md", "empty", "z_pipe", "z_device", "z_loop", "z_broken"} {
					if reports && !strings.Contains(out, s) {
						t.Errorf("%s: got no report of %s: %s", verb, s, out)
					}
				}
			}
		})
	}
}

// keepOnly removes all files of a directory but one.
func keepOnly(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != name {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestOddReplacements replaces each file of a table in turn by something irregular: every verb terminates, and if rows
// cannot be read, verify reports it.
func TestOddReplacements(t *testing.T) {
	for name, make := range map[string]func(*testing.T, string){
		"cfile":   converted("cfile"),
		"redfile": converted("redfile", "split=row-group", "row-group-rows=2"),
		"carbon":  carbonSample("managed_del"),
		"kudu":    kuduSample,
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "t")
			make(t, dir)
			var files []string
			if err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					files = append(files, p)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			for i, f := range files {
				for _, kind := range []string{"pipe", "device", "loop"} {
					if testing.Short() && (i%9 != 0 || kind == "loop") {
						continue
					}
					if err := os.Rename(f, dir+".aside"); err != nil {
						t.Fatal(err)
					}
					if err := oddKinds[kind](f); err != nil {
						t.Fatal(err)
					}
					what := fmt.Sprintf("a %s for %s", kind, strings.TrimPrefix(f, dir))
					got := map[string]int{}
					for _, verb := range []string{"cat", "verify", "ls", "describe", "recover -o OUT.arrow",
						"convert --all -o OUT/"} {
						st, out := runOver(t, verb, dir)
						got[verb] = st
						if verb == "verify" && got["cat"] != 0 && got["cat"] != cli.StatusUse && st == 0 {
							t.Errorf("%s: got status %d of cat, %d of verify: %s", what, got["cat"], st, out)
						}
					}
					if err := os.Remove(f); err != nil {
						t.Fatal(err)
					}
					if err := os.Rename(dir+".aside", f); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}
