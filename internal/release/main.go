// Command release makes everything that a release of stoa consists of, from the current commit.
//
//	go run -C internal/release . -root ../.. -o dist                     # what make dist does
//	go run -C internal/release . -root ../.. -o dist -only linux/amd64   # the command of one platform
//	go run -C internal/release . -root ../.. -o dist -commands           # what make release does
//
// The same commit and the same tools produce the same bytes, whenever and wherever they run: every time in a file is
// that of the commit. `make release-check` checks that. It is a module of its own, since packages and images are
// written by libraries that nobody else should have to download.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}

func main() {
	log.SetFlags(0)
	root := flag.String("root", ".", "the tree to build, a clone of the repository")
	out := flag.String("o", "dist", "directory to write to, relative to the tree")
	only := flag.String("only", "", "only the command of this platform and what is made of it")
	commands := flag.Bool("commands", false, "only the commands, bills of materials and checksums")
	flag.Parse()
	if err := os.Chdir(*root); err != nil {
		log.Fatal(err)
	}
	if *only != "" && !slices.Contains(platforms, *only) {
		log.Fatalf("-only: expected one of %s, found %q", strings.Join(platforms, ", "), *only)
	}
	r := &release{out: *out}
	if err := r.make(*only, *commands); err != nil {
		log.Fatal(err)
	}
}

// release is a release that is being made.
type release struct {
	out     string
	version string // SemVer, without v
	commit  string
	when    time.Time // of the commit: the time of every file in every archive
	goes    string    // the version of Go
	modules []component
	files   []artifact
	tree    []entry // what an installation consists of, besides the command
}

// artifact is a file of the release, and what it was made of: names of other artifacts, or source.
type artifact struct {
	name string
	from []string
	sum  [sha256.Size]byte
	size int
}

// source stands in artifact.from for the tree of the commit.
const source = ""

func (r *release) make(only string, commands bool) error {
	if err := os.MkdirAll(r.out, 0o777); err != nil {
		return err
	}
	var built []string
	for _, p := range platforms {
		if only != "" && p != only {
			continue
		}
		if err := r.command(p); err != nil {
			return err
		}
		built = append(built, p)
	}
	if !commands {
		if err := r.installable(built); err != nil {
			return err
		}
		r.companions(only)
		if err := r.provenance(); err != nil {
			return err
		}
	}
	return r.sums()
}

// installable writes what the commands of some platforms are installed from.
func (r *release) installable(built []string) (err error) {
	host, err := r.host()
	if err != nil {
		return err
	}
	if r.tree, err = installation(host); err != nil {
		return err
	}
	for _, p := range built {
		if err := r.archive(p); err != nil {
			return err
		}
		if !strings.HasPrefix(p, "linux/") {
			continue
		}
		if err := r.packages(p); err != nil {
			return err
		}
	}
	if err := r.image(built); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	return r.formula()
}

// host returns the name of a command that runs here, to ask it for its manual pages and completions.
func (r *release) host() (string, error) {
	name := binary(runtime.GOOS + "/" + runtime.GOARCH)
	if r.has(name) {
		return filepath.Abs(filepath.Join(r.out, name))
	}
	dir, err := os.MkdirTemp("", "stoa-release")
	if err != nil {
		return "", err
	}
	name = filepath.Join(dir, name)
	return name, compile(runtime.GOOS+"/"+runtime.GOARCH, name)
}

func (r *release) has(name string) bool {
	return slices.ContainsFunc(r.files, func(a artifact) bool { return a.name == name })
}

// add notes a file that was written to r.out.
func (r *release) add(name string, from ...string) error {
	b, err := os.ReadFile(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	r.files = append(r.files, artifact{name, from, sha256.Sum256(b), len(b)})
	log.Printf("%10d  %s", len(b), filepath.Join(r.out, name))
	return nil
}

func (r *release) write(name string, b []byte, from ...string) error {
	if err := os.WriteFile(filepath.Join(r.out, name), b, 0o666); err != nil {
		return err
	}
	return r.add(name, from...)
}

func (r *release) sums() error {
	var sums strings.Builder
	for _, a := range r.files {
		fmt.Fprintf(&sums, "%x  %s\n", a.sum, a.name)
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o666)
}

// identify takes version, commit and time from what Go stamped a command with. The version is the tag of the commit, or
// made of its time and hash; where Go finds no repository (as in a worktree), there is none. SOURCE_DATE_EPOCH, if it
// is set, is the time.
func (r *release) identify(info *buildinfo.BuildInfo) error {
	r.goes = info.GoVersion
	r.version = strings.TrimPrefix(info.Main.Version, "v")
	if r.version == "" || r.version == "(devel)" {
		r.version = "0.0.0-devel"
	}
	r.when = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC) // the first that a zip can hold
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.commit = s.Value
		case "vcs.time":
			t, err := time.Parse(time.RFC3339, s.Value)
			if err != nil {
				return err
			}
			r.when = t.UTC()
		}
	}
	if s := os.Getenv("SOURCE_DATE_EPOCH"); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: expected seconds since 1970, found %q", s)
		}
		r.when = time.Unix(n, 0).UTC()
	}
	return nil
}
