package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// image writes an OCI image of the command for every Linux among platforms, as a tar: the command, its documents,
// the root certificates without which no address can be read, and nothing else. It runs as nobody, in /data.
func (r *release) image(platforms []string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var from []string
	for _, p := range platforms {
		arch, linux := strings.CutPrefix(p, "linux/")
		if !linux {
			continue
		}
		img, err := r.imageOf(p, arch)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform:    &v1.Platform{OS: "linux", Architecture: arch},
			Annotations: map[string]string{"org.opencontainers.image.ref.name": "stoa:" + imageTag(r.version)}}})
		from = append(from, binary(p))
	}
	if from == nil {
		return nil
	}
	dir, err := os.MkdirTemp("", "stoa-image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := tarOf(&out, dir, r.when); err != nil {
		return err
	}
	return r.write("stoa-"+r.version+"-oci.tar", out.Bytes(), from...)
}

// imageTag is a version as the tag of an image: those have no plus.
func imageTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

func (r *release) imageOf(platform, arch string) (v1.Image, error) {
	tree, err := r.installed(platform)
	if err != nil {
		return nil, err
	}
	body := []entry{tree[0]}
	for _, e := range tree {
		if strings.HasPrefix(e.path, docDir) {
			body = append(body, e)
		}
	}
	for i := range body {
		body[i].path = "usr/" + body[i].path
	}
	body = append(body,
		entry{"etc/passwd", 0o644, []byte("nobody:x:65534:65534:nobody:/data:/usr/bin/stoa\n")},
		entry{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates()})
	var plain bytes.Buffer
	if err := tarred(&plain, "", body, r.when); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(plain.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(6))
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.Append(img, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: r.when}, CreatedBy: "stoa-release"}}); err != nil {
		return nil, err
	}
	return mutate.ConfigFile(img, r.config(img, arch))
}

// certificates are the roots that Mozilla trusts without a condition that a list of certificates could not express.
func certificates() (text []byte) {
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return text
}

func (r *release) config(img v1.Image, arch string) *v1.ConfigFile {
	c, err := img.ConfigFile()
	if err != nil {
		c = &v1.ConfigFile{} // it was made above, in memory
	}
	c = c.DeepCopy()
	c.Architecture, c.OS, c.Created = arch, "linux", v1.Time{Time: r.when}
	c.Config = v1.Config{Entrypoint: []string{"/usr/bin/stoa"}, Cmd: []string{"help"}, WorkingDir: "/data",
		User: "65534:65534", Env: []string{"PATH=/usr/bin"}, Labels: map[string]string{
			"org.opencontainers.image.title": "stoa", "org.opencontainers.image.version": r.version,
			"org.opencontainers.image.revision": r.commit, "org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.description": summary}}
	return c
}

// tarOf writes the files below dir, in the order of their names.
func tarOf(to io.Writer, dir string, when time.Time) error {
	w := tar.NewWriter(to)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(rel), Size: int64(len(b)), Mode: 0o644,
			ModTime: when, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return fmt.Errorf("%s: %w", rel, err)
		}
		_, err = w.Write(b)
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}
