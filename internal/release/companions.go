package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// companion is a part of the release that needs more than Go: it is left out, with a line, where that is not at hand.
type companion struct {
	what  string
	tools []string // programs
	build func(*release) (name string, err error)
}

var companionsOfLinux = []companion{
	{"the Python wheel", []string{"python3", "cc"}, (*release).wheel},
	{"the DuckDB extension", []string{"make", "cc"}, (*release).duckdb},
	{"the Spark jar", []string{"javac", "mvn"}, (*release).spark},
}

// companions builds all of them, for the platform that this runs on.
func (r *release) companions(only string) {
	here := runtime.GOOS + "/" + runtime.GOARCH
	if only != "" && only != here {
		return
	}
	for _, c := range companionsOfLinux {
		if err := r.companion(c); err != nil {
			log.Printf("%10s  %s: %v", "left out", c.what, err)
		}
	}
}

func (r *release) companion(c companion) error {
	for _, t := range c.tools {
		if _, err := exec.LookPath(t); err != nil {
			return fmt.Errorf("no %s was found", t)
		}
	}
	name, err := c.build(r)
	if err != nil {
		return err
	}
	return r.add(name, source)
}

// run runs a program with additions to the environment. Its output is shown only if it fails.
func run(env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	var notes strings.Builder
	cmd.Stderr = &notes
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", name, err, out, notes.String())
	}
	return strings.TrimSpace(string(out)), nil
}

func (r *release) wheel() (string, error) {
	name, err := run([]string{"GOFLAGS=-trimpath", "GOAMD64=v1"}, "python3", "python/backend/stoa_build.py", r.out)
	return filepath.Base(name), err
}

// duckdb builds the extension. Its footer has 32 bytes for the version; one made of a time and a commit is longer, and
// then the commit alone is told.
func (r *release) duckdb() (string, error) {
	version := "v" + r.version
	if len(version) > 32 {
		version = r.commit[:12]
	}
	platform := runtime.GOOS + "_" + runtime.GOARCH
	dir, err := os.MkdirTemp("", "stoa-duckdb")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	library, extension := filepath.Join(dir, "libstoa_duckdb.so"), extensionName(r.version, platform)
	env := []string{"CGO_ENABLED=1", "GOFLAGS=-trimpath", "GOAMD64=v1"}
	if _, err := run(env, "go", "build", "-C", "duckdb", "-buildmode=c-shared", "-ldflags=-s -w -buildid=",
		"-o", library, "."); err != nil {
		return "", err
	}
	out, err := filepath.Abs(filepath.Join(r.out, extension))
	if err != nil {
		return "", err
	}
	_, err = run([]string{"CGO_ENABLED=0"}, "go", "run", "-C", "duckdb", "./footer", library, out, version, platform)
	return extension, err
}

// extensionName returns the name of the extension's file. DuckDB takes what is before the first dot for the name of the
// extension, and calls the function NAME_init_c_api.
func extensionName(version, platform string) string {
	return "stoa." + version + "-" + platform + ".duckdb_extension"
}

func (r *release) spark() (string, error) {
	if _, err := run(nil, "mvn", "-q", "-B", "-ntp", "-f", "spark/pom.xml", "package"); err != nil {
		return "", err
	}
	b, err := os.ReadFile("spark/target/stoa-spark.jar")
	if err != nil {
		return "", err
	}
	name := "stoa-spark-" + r.version + ".jar"
	return name, os.WriteFile(filepath.Join(r.out, name), b, 0o666)
}
