package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// made is a release of this platform, which all tests look at.
var made struct{ dir, version string }

func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "stoa-release-test")
	if err != nil {
		panic(err)
	}
	r := &release{out: dir}
	if err := r.produce(); err != nil {
		panic(err)
	}
	made.dir, made.version = dir, r.version
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// produce makes all but what needs a C compiler or Java.
func (r *release) produce() error {
	p := runtime.GOOS + "/" + runtime.GOARCH
	if err := os.MkdirAll(r.out, 0o777); err != nil {
		return err
	}
	if err := r.command(p); err != nil {
		return err
	}
	if err := r.installable([]string{p}); err != nil {
		return err
	}
	if err := r.provenance(); err != nil {
		return err
	}
	return r.sums()
}

func name(suffix string) string {
	return filepath.Join(made.dir, "stoa-"+made.version+"-"+suffix)
}

func need(t *testing.T, programs ...string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("packages are installed on Linux")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed", p)
		}
	}
}

func output(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, b)
	}
	return string(b)
}

// TestTwice makes the release again, elsewhere, under another time zone and mask: the same bytes.
func TestTwice(t *testing.T) {
	again := &release{out: filepath.Join(t.TempDir(), "another", "place")}
	t.Setenv("TZ", "Asia/Kathmandu")
	t.Setenv("HOSTNAME", "another")
	if err := again.produce(); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(filepath.Join(made.dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(filepath.Join(again.out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if string(first) != string(second) {
		t.Errorf("first\n%ssecond\n%s", first, second)
	}
	if n := strings.Count(string(first), "\n"); n < 8 {
		t.Errorf("expected at least 8 files, found %d:\n%s", n, first)
	}
}

// checkInstalled checks an installation below root, whose zsh looks for completions in zsh.
func checkInstalled(t *testing.T, root, zsh string) {
	t.Helper()
	usr := filepath.Join(root, "usr")
	for _, want := range []string{"share/man/man1/stoa.1.gz", "share/man/man1/stoa-verify.1.gz",
		"share/fish/vendor_completions.d/stoa.fish", "share/zsh/" + zsh + "/_stoa", "share/doc/stoa/copyright",
		"share/doc/stoa/NOTICE", "share/bash-completion/completions/stoa"} {
		if info, err := os.Stat(filepath.Join(usr, want)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", want, err)
		}
	}
	stoa := filepath.Join(usr, "bin/stoa")
	if out := output(t, "", stoa, "version"); !strings.HasPrefix(out, "stoa ") {
		t.Errorf("stoa version: %s", out)
	}
	demo := filepath.Join(t.TempDir(), "demo")
	output(t, "", stoa, "demo", demo)
	if entries, err := os.ReadDir(demo); err != nil || len(entries) == 0 {
		t.Errorf("stoa demo: %d files, %v", len(entries), err)
	}
	if _, err := exec.LookPath("bash"); err == nil {
		out := output(t, "", "bash", "--norc", "-c",
			". "+filepath.Join(usr, "share/bash-completion/completions/stoa")+"; complete -p stoa")
		if !strings.Contains(out, "complete ") || !strings.HasSuffix(strings.TrimSpace(out), " stoa") {
			t.Errorf("complete -p stoa: %s", out)
		}
	}
	if _, err := exec.LookPath("man"); err == nil {
		out := output(t, "", "man", "-M", filepath.Join(usr, "share/man"), "-w", "stoa-verify")
		if !strings.Contains(out, "stoa-verify.1.gz") {
			t.Errorf("man -w stoa-verify: %s", out)
		}
	}
}

func TestDebInstalls(t *testing.T) {
	need(t, "dpkg")
	root, deb := t.TempDir(), name("linux-"+runtime.GOARCH+".deb")
	for _, d := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"status", "available"} {
		if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg", f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"--root=" + root, "--log=/dev/null"}
	if os.Getuid() != 0 {
		args = append(args, "--force-not-root")
	}
	output(t, "", "dpkg", append(args, "-i", deb)...)
	checkInstalled(t, root, "vendor-completions")
	if out := output(t, "", "dpkg-query", "--admindir="+root+"/var/lib/dpkg", "-W"); !strings.Contains(out,
		packageVersion(made.version)) {
		t.Errorf("dpkg-query: %s", out)
	}
	output(t, "", "dpkg", append(args, "-r", "stoa")...)
	if _, err := os.Stat(filepath.Join(root, "usr/bin/stoa")); !os.IsNotExist(err) {
		t.Errorf("the command is still there after dpkg -r: %v", err)
	}
}

func TestRPMInstalls(t *testing.T) {
	need(t, "rpm")
	root, rpm := t.TempDir(), name("linux-"+runtime.GOARCH+".rpm")
	// Where rpm is not the system's own, it has no database to find a shell or a library in.
	output(t, "", "rpm", "--root", root, "--nodeps", "--noscripts", "--nosignature", "-i", rpm)
	checkInstalled(t, root, "site-functions")
	if out := output(t, "", "rpm", "--nosignature", "-qp", "--qf", "%{VERSION} %{LICENSE} %{BUILDHOST}", rpm); out !=
		packageVersion(made.version)+" Apache-2.0 localhost" {
		t.Errorf("rpm -q: %s", out)
	}
	output(t, "", "rpm", "--nosignature", "-Kv", rpm)
}

func TestArchive(t *testing.T) {
	root := t.TempDir()
	b, err := os.ReadFile(name(runtime.GOOS + "-" + runtime.GOARCH + ".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	unpack(t, root, b)
	dirs, _ := filepath.Glob(filepath.Join(root, "*"))
	if len(dirs) != 1 {
		t.Fatalf("expected one directory, found %v", dirs)
	}
	if err := os.Rename(dirs[0], filepath.Join(root, "usr")); err != nil {
		t.Fatal(err)
	}
	checkInstalled(t, root, "site-functions")
}

func unpack(t *testing.T, root string, b []byte) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o755)
		} else {
			var body []byte
			if body, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(to, body, os.FileMode(h.Mode))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// descriptor is a reference of an OCI image.
type descriptor struct {
	Digest   string
	Size     int
	Platform struct{ OS, Architecture string }
}

// TestImage reads the image by the specification, compares every digest, unpacks it, and runs the command there, with
// nothing else in its root.
func TestImage(t *testing.T) {
	need(t)
	blobs := map[string][]byte{}
	f, err := os.Open(name("oci.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if blobs[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	get := func(d descriptor) []byte {
		b := blobs["blobs/"+strings.ReplaceAll(d.Digest, ":", "/")]
		if sum := sha256.Sum256(b); "sha256:"+hex.EncodeToString(sum[:]) != d.Digest || len(b) != d.Size {
			t.Fatalf("expected %s of %d bytes, computed %x of %d", d.Digest, d.Size, sum, len(b))
		}
		return b
	}
	var index struct{ Manifests []descriptor }
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	var config struct {
		OS, Architecture string
		Config           struct {
			Entrypoint []string
			User       string
		}
	}
	parse := func(b []byte, v any) {
		if err := json.Unmarshal(b, v); err != nil {
			t.Fatalf("%v\n%.200s", err, b)
		}
	}
	parse(blobs["index.json"], &index)
	if len(index.Manifests) != 1 || index.Manifests[0].Platform.Architecture != runtime.GOARCH {
		t.Fatalf("index: %s", blobs["index.json"])
	}
	parse(get(index.Manifests[0]), &manifest)
	parse(get(manifest.Config), &config)
	if !strings.Contains(string(blobs["oci-layout"]), "1.0.0") || config.OS != "linux" ||
		config.Config.User != "65534:65534" || !slices.Equal(config.Config.Entrypoint, []string{"/usr/bin/stoa"}) {
		t.Errorf("layout %s, config %+v", blobs["oci-layout"], config)
	}
	root := t.TempDir()
	for _, l := range manifest.Layers {
		unpack(t, root, get(l))
	}
	if b, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt")); err != nil ||
		bytes.Count(b, []byte("BEGIN CERTIFICATE")) < 50 {
		t.Errorf("root certificates: %d bytes, %v", len(b), err)
	}
	if os.Getuid() != 0 {
		t.Skip("chroot is for root")
	}
	if out := output(t, "", "chroot", root, "/usr/bin/stoa", "version"); !strings.HasPrefix(out, "stoa ") {
		t.Errorf("stoa version in the image: %s", out)
	}
	output(t, "", "chroot", root, "/usr/bin/stoa", "demo", "/demo")
}

// TestProvenance checks that every file has a statement with its checksum, and is made of files that have one, and at
// last of the source.
func TestProvenance(t *testing.T) {
	b, err := os.ReadFile(name("")[:len(name(""))-1] + ".intoto.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	from := map[string][]string{}
	for line := range strings.Lines(string(b)) {
		var s statement
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(filepath.Join(made.dir, s.Subject[0].Name))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(file); hex.EncodeToString(sum[:]) != s.Subject[0].Digest["sha256"] {
			t.Errorf("%s: expected %s, computed %x", s.Subject[0].Name, s.Subject[0].Digest["sha256"], sum)
		}
		for _, d := range s.Predicate.Definition.Resolved {
			from[s.Subject[0].Name] = append(from[s.Subject[0].Name], d.Name)
		}
	}
	files, err := os.ReadDir(made.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".intoto.jsonl") || f.Name() == "SHA256SUMS" {
			continue
		}
		at, steps := f.Name(), 0
		for ; !slices.Contains(from[at], "go") && len(from[at]) > 0 && steps < 9; steps++ {
			at = from[at][0]
		}
		if !slices.Contains(from[at], "go") {
			t.Errorf("%s is made of %v", f.Name(), from[f.Name()])
		}
	}
}

// TestPackageVersion has versions in the order in which Debian and RPM must sort them.
// TestExtensionName: DuckDB finds the function that begins the extension by the name of its file up to the first dot.
// The one that the extension has is in its source.
func TestExtensionName(t *testing.T) {
	var source []byte
	files, _ := filepath.Glob("duckdb/*")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		source = append(source, b...)
	}
	for _, version := range []string{"1.0.0", "1.0.0-rc.1", "0.0.0-devel"} {
		name, _, _ := strings.Cut(extensionName(version, "linux_amd64"), ".")
		if !strings.Contains(string(source), name+"_init_c_api(") {
			t.Errorf("%s: DuckDB would call %s_init_c_api, which is not in duckdb/", version, name)
		}
	}
}

func TestPackageVersion(t *testing.T) {
	order := []string{"0.0.0-20260101000000-0123456789ab", "0.0.0", "1.0.0-rc.1", "1.0.0-rc.2", "1.0.0",
		"1.0.1-0.20260101000000-0123456789ab", "1.0.1"}
	for i, v := range order {
		if p := packageVersion(v); strings.Contains(p, "-") {
			t.Errorf("%s has a hyphen", p)
		} else if i > 0 {
			if _, err := exec.LookPath("dpkg"); err == nil {
				output(t, "", "dpkg", "--compare-versions", packageVersion(order[i-1]), "lt", p)
			}
		}
	}
}
