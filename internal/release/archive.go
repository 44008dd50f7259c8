package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"
)

// archive writes the installation of a platform as a tar, or for Windows as a zip. All is below one directory.
func (r *release) archive(platform string) error {
	tree, err := r.installed(platform)
	if err != nil {
		return err
	}
	base := fmt.Sprintf("stoa-%s-%s", r.version, strings.ReplaceAll(platform, "/", "-"))
	var out bytes.Buffer
	name := base + ".tar.gz"
	if strings.HasPrefix(platform, "windows/") {
		name = base + ".zip"
		err = zipped(&out, base+"/", tree, r.when)
	} else {
		var plain bytes.Buffer
		if err = tarred(&plain, base+"/", tree, r.when); err == nil {
			var b []byte
			b, err = compressed(plain.Bytes())
			out.Write(b)
		}
	}
	if err != nil {
		return err
	}
	return r.write(name, out.Bytes(), binary(platform), source)
}

// tarred writes files below prefix, with the directories that lead to them, all of them root's.
func tarred(to io.Writer, prefix string, tree []entry, when time.Time) error {
	w := tar.NewWriter(to)
	dirs := map[string]bool{".": true, "/": true}
	var above func(dir string) error
	above = func(dir string) error {
		if dirs[dir] {
			return nil
		}
		dirs[dir] = true
		if err := above(path.Dir(dir)); err != nil {
			return err
		}
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: when,
			Format: tar.FormatUSTAR})
	}
	for _, e := range tree {
		if err := above(path.Dir(prefix + e.path)); err != nil {
			return err
		}
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: prefix + e.path, Size: int64(len(e.body)),
			Mode: int64(e.mode), ModTime: when, Format: tar.FormatUSTAR})
		if err != nil {
			return err
		}
		if _, err := w.Write(e.body); err != nil {
			return err
		}
	}
	return w.Close()
}

// zipped is the same for a system without manual pages.
func zipped(to io.Writer, prefix string, tree []entry, when time.Time) error {
	w := zip.NewWriter(to)
	for _, e := range tree {
		if strings.HasPrefix(e.path, manDir) {
			continue
		}
		h := &zip.FileHeader{Name: prefix + e.path, Method: zip.Deflate, Modified: when}
		h.SetMode(e.mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := f.Write(e.body); err != nil {
			return err
		}
	}
	return w.Close()
}

// formula writes a formula for Homebrew. The address is the one thing in it that a release cannot know.
func (r *release) formula() error {
	text, err := os.ReadFile("internal/release/stoa.rb.in")
	if err != nil {
		return err
	}
	s := strings.ReplaceAll(string(text), "@VERSION@", r.version)
	for _, p := range platforms {
		mark := "@SHA256-" + strings.ReplaceAll(p, "/", "-") + "@"
		base := fmt.Sprintf("stoa-%s-%s.tar.gz", r.version, strings.ReplaceAll(p, "/", "-"))
		for _, a := range r.files {
			if a.name == base {
				s = strings.ReplaceAll(s, mark, fmt.Sprintf("%x", a.sum))
			}
		}
	}
	return r.write("stoa.rb", []byte(s), source)
}
