package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
)

// entry is a file of an installation: its path, without the prefix (usr, or the directory of an archive).
type entry struct {
	path string
	mode os.FileMode
	body []byte
}

// The paths of the files of an installation, as Debian, Fedora and Homebrew have them.
const (
	binDir  = "bin/"
	manDir  = "share/man/man1/"
	bashDir = "share/bash-completion/completions/"
	zshDir  = "share/zsh/site-functions/"
	fishDir = "share/fish/vendor_completions.d/"
	docDir  = "share/doc/stoa/"
)

// installation returns everything that is installed besides the command: manual pages and completions, which the
// command writes itself, and documents.
func installation(command string) (tree []entry, err error) {
	for _, c := range []struct{ shell, path string }{
		{"bash", bashDir + "stoa"}, {"zsh", zshDir + "_stoa"}, {"fish", fishDir + "stoa.fish"}} {
		text, err := exec.Command(command, "completion", c.shell).Output()
		if err != nil {
			return nil, fmt.Errorf("completion %s: %w", c.shell, err)
		}
		tree = append(tree, entry{c.path, 0o644, text})
	}
	pages, err := os.MkdirTemp("", "stoa-man")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(pages)
	if out, err := exec.Command(command, "man", pages).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("man: %w\n%s", err, out)
	}
	names, err := filepath.Glob(filepath.Join(pages, "*.1"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("expected manual pages, found %d: %v", len(names), err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if b, err = compressed(b); err != nil {
			return nil, err
		}
		tree = append(tree, entry{manDir + filepath.Base(name) + ".gz", 0o644, b})
	}
	for from, to := range map[string]string{"README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md",
		"LICENSE": "copyright", "NOTICE": "NOTICE"} {
		b, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		tree = append(tree, entry{docDir + to, 0o644, b})
	}
	sort.Slice(tree, func(i, j int) bool { return tree[i].path < tree[j].path })
	return tree, nil
}

// compressed is gzip without a name and a time.
func compressed(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, 6)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// installed returns the whole installation of a platform, the command first.
func (r *release) installed(platform string) ([]entry, error) {
	b, err := os.ReadFile(filepath.Join(r.out, binary(platform)))
	if err != nil {
		return nil, err
	}
	name := "stoa"
	if strings.HasPrefix(platform, "windows/") {
		name += ".exe"
	}
	return append([]entry{{binDir + name, 0o755, b}}, r.tree...), nil
}
