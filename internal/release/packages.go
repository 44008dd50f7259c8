package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"strings"
	"time"

	"github.com/google/rpmpack"
)

const summary = "open, verify, recover and convert columnar files without the systems that wrote them"

const longer = "The files are those of Kudu, CarbonData, RedFile, Trevni, Parquet, Iceberg,\n" +
	"Delta Lake and Arrow. The command is static."

const maintainer = "The stoa developers <stoa@localhost>"

// packageVersion is a version as Debian and RPM sort it: a pre-release is before the release, and no hyphen is left.
func packageVersion(semver string) string {
	release, pre, found := strings.Cut(semver, "-")
	if !found {
		return release
	}
	return release + "~" + strings.ReplaceAll(pre, "-", ".")
}

// packages writes the packages of a platform.
func (r *release) packages(platform string) error {
	tree, err := r.installed(platform)
	if err != nil {
		return err
	}
	for i := range tree {
		tree[i].path = "usr/" + tree[i].path
	}
	arch := strings.TrimPrefix(platform, "linux/")
	for _, p := range []struct {
		format string
		of     func([]entry, string) ([]byte, error)
	}{{"deb", r.deb}, {"rpm", r.rpm}} {
		b, err := p.of(tree, arch)
		if err != nil {
			return fmt.Errorf("%s for %s: %w", p.format, platform, err)
		}
		name := fmt.Sprintf("stoa-%s-linux-%s.%s", r.version, arch, p.format)
		if err := r.write(name, b, binary(platform), source); err != nil {
			return err
		}
	}
	return nil
}

// deb returns a package of Debian, format 2.0: an ar archive of three members (man 5 deb).
func (r *release) deb(tree []entry, arch string) ([]byte, error) {
	var data, sums bytes.Buffer
	size := 0
	files := make([]entry, len(tree))
	for i, e := range tree { // Debian's zsh looks nowhere else for what packages bring
		e.path = strings.Replace(e.path, "zsh/site-functions", "zsh/vendor-completions", 1)
		size += len(e.body)
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(e.body), e.path)
		files[i] = e
	}
	control := fmt.Sprintf("Package: stoa\nVersion: %s\nSection: utils\nPriority: optional\nArchitecture: %s\n"+
		"Installed-Size: %d\nMaintainer: %s\nDescription: %s\n %s\n", packageVersion(r.version), arch, (size+1023)/1024,
		maintainer, summary, strings.ReplaceAll(longer, "\n", "\n "))
	if err := tarred(&data, "./", files, r.when); err != nil {
		return nil, err
	}
	var about bytes.Buffer
	err := tarred(&about, "./", []entry{{"control", 0o644, []byte(control)}, {"md5sums", 0o644, sums.Bytes()}}, r.when)
	if err != nil {
		return nil, err
	}
	out := bytes.NewBufferString("!<arch>\n")
	member := func(name string, b []byte) {
		fmt.Fprintf(out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, r.when.Unix(), 0, 0, "100644", len(b))
		out.Write(b)
		if len(b)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	member("debian-binary", []byte("2.0\n"))
	for _, m := range []struct {
		name string
		tar  []byte
	}{{"control.tar.gz", about.Bytes()}, {"data.tar.gz", data.Bytes()}} {
		b, err := compressed(m.tar)
		if err != nil {
			return nil, err
		}
		member(m.name, b)
	}
	return out.Bytes(), nil
}

// rpm returns a package of RPM.
func (r *release) rpm(tree []entry, arch string) ([]byte, error) {
	p, err := rpmpack.NewRPM(rpmpack.RPMMetaData{Name: "stoa", Version: packageVersion(r.version), Release: "1",
		Arch: map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch], OS: "linux", Summary: summary,
		Description: longer, Licence: "Apache-2.0", Packager: maintainer, BuildHost: "localhost", BuildTime: r.when,
		Compressor: "gzip:6"})
	if err != nil {
		return nil, err
	}
	for _, e := range tree {
		kind := rpmpack.GenericFile
		if strings.HasPrefix(e.path, "usr/"+docDir) {
			kind = rpmpack.DocFile
		}
		p.AddFile(rpmpack.RPMFile{Name: "/" + e.path, Body: e.body, Mode: uint(e.mode) | 0o100000, Owner: "root",
			Group: "root", MTime: uint32(min(r.when.Unix(), time.Unix(1<<32-1, 0).Unix())), Type: kind})
	}
	var out bytes.Buffer
	err = p.Write(&out)
	return out.Bytes(), err
}
