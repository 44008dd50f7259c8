package kudu_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// TestDirectoryForMetadata: a directory in place of a metadata file has the same effect as a file of zeros: each verb
// reports it as damage, and the number of tables is the same.
func TestDirectoryForMetadata(t *testing.T) {
	meta := regexp.MustCompile(`(^|/)(instance|block_manager_instance|(tablet-meta|consensus-meta)/[0-9a-f]{32})$`)
	for _, place := range []string{"file", "history", "log"} {
		root := filepath.Join("testdata", place)
		tried := 0
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			rel, _ := filepath.Rel(root, name)
			if err != nil || d.IsDir() || !meta.MatchString(filepath.ToSlash(rel)) {
				return err
			}
			tried++
			zeroed, replaced := t.TempDir(), t.TempDir()
			for _, dir := range []string{zeroed, replaced} {
				if err := os.CopyFS(dir, os.DirFS(root)); err != nil {
					return err
				}
				if err := os.Remove(filepath.Join(dir, rel)); err != nil {
					return err
				}
			}
			if err := os.WriteFile(filepath.Join(zeroed, rel), make([]byte, 100), 0o666); err != nil {
				return err
			}
			if err := os.Mkdir(filepath.Join(replaced, rel), 0o777); err != nil {
				return err
			}
			if want, got := verbsOf(t, zeroed), verbsOf(t, replaced); got != want {
				t.Errorf("%s: with a directory: got %s, want %s, as with zeros", name, got, want)
			}
			return nil
		})
		if err != nil || tried < 3 {
			t.Fatalf("%s: got %v, %d files, want 3 or more", place, err, tried)
		}
	}
}

// verbsOf summarizes what verbs report for a directory: the number of tables, and whether something is damaged or
// fails.
func verbsOf(t *testing.T, dir string) string {
	class := func(err error) string {
		switch {
		case err == nil:
			return ""
		case errors.Is(err, fault.Corrupt):
			return "corrupt"
		case errors.Is(err, fault.Invalid):
			return "invalid"
		}
		return err.Error()
	}
	tg := format.Target{Tree: store.Local{}, Name: dir}
	tables, damaged, listing := 0, false, ""
	for e, err := range kudu.Format.List(t.Context(), tg) {
		if listing = class(err); err == nil {
			tables++
		}
		for _, f := range e.Findings {
			damaged = damaged || f.Severity == region.Error
		}
	}
	verified := false
	for f := range kudu.Format.Verify(t.Context(), tg, format.OpenOptions{Depth: format.Quick}) {
		verified = verified || f.Severity == region.Error
	}
	r, err := kudu.Format.Open(t.Context(), tg, format.OpenOptions{})
	if err == nil {
		r.Close()
	}
	return fmt.Sprintf("%d tables, listing %q, damaged %t, verify %t, open %q", tables, listing, damaged,
		verified, class(err))
}
