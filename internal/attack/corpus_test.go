package attack

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// real lists the places that real systems wrote: those below the directory that STOA_CORPUS names, or below the
// project's own corpus, as FORMAT:PATH, and some Kudu tables as kudu:DIR#TABLE.
func real() (out []string) {
	root := os.Getenv("STOA_CORPUS")
	if root == "" {
		root = filepath.Join("..", "..", "corpus")
	}
	filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, p)
		top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		switch {
		case err != nil:
		case d.IsDir() && d.Name() == "negative":
			return fs.SkipDir
		case d.IsDir() && top == "carbon" && isTable(p):
			out = append(out, "carbon:"+p)
			return fs.SkipDir
		case strings.HasSuffix(p, ".cfile") && !strings.Contains(p, "synthetic"):
			out = append(out, "cfile:"+p)
		case strings.HasSuffix(p, ".trv"):
			out = append(out, "trevni:"+p)
		case strings.HasSuffix(p, ".red"):
			out = append(out, "redfile:"+p)
		case strings.HasSuffix(p, ".carbondata"):
			out = append(out, "carbon:"+p)
		}
		return nil
	})
	kudu := filepath.Join("..", "..", "format", "kudu", "testdata")
	for _, t := range []string{"file#autoinc", "log#default.loadgen_auto_0d98f44b1f784327b5a35806f1608608",
		"log#ranges", "history#d_major"} {
		out = append(out, "kudu:"+filepath.Join(kudu, t))
	}
	slices.Sort(out)
	return out
}

// isTable reports whether a directory is a CarbonData table.
func isTable(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "Metadata"))
	return err == nil
}

// realFixture copies a place and reads it. It is nil if the place has no rows, is not a table, is damaged, or is too
// large to be copied often.
func (a *attack) realFixture(name string) *fixture {
	if f, ok := a.made[name]; ok {
		return f
	}
	a.made[name] = nil
	word, place, _ := strings.Cut(name, ":")
	place, table, isPart := strings.Cut(place, "#")
	f := &fixture{name: word + "/real", place: filepath.Base(place), dir: a.temp("real"), origin: name}
	if isPart {
		f.place += "#" + table
		f.reading, f.changed = []string{"--partial"}, true
	}
	f.changed = f.changed || isTable(place) // losses may include deleted rows
	if err := copyPlace(place, filepath.Join(f.dir, filepath.Base(place))); err != nil {
		return nil
	}
	if err := a.learn(f); err != nil || len(f.ref) == 0 {
		return nil
	}
	if n := expected(place); n >= 0 && n != len(f.ref) {
		a.note(f, nil, 0, fmt.Sprintf("whole: expected %d rows, as the system that wrote it, got %d", n, len(f.ref)))
	}
	a.made[name] = f
	return f
}

// copyPlace copies a file, or a directory of at most 2 MB.
func copyPlace(from, to string) error {
	size := int64(0)
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, p)
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o777)
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		if size += int64(len(b)); size > 2<<20 {
			return io.ErrShortWrite
		}
		if rel == "." {
			return os.WriteFile(to, b, 0o666)
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o666)
	})
}

// expected returns the number of rows of a place according to the file of expected rows beside it; -1 if there is none.
func expected(place string) int {
	base := strings.TrimSuffix(strings.TrimSuffix(place, ".red"), ".trv")
	if b, err := os.ReadFile(base + ".expect.jsonl"); err == nil {
		return bytes.Count(b, []byte("\n"))
	}
	f, err := os.Open(base + ".expected.jsonl.gz")
	if err != nil {
		return -1
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return -1
	}
	b, err := io.ReadAll(z)
	if err != nil {
		return -1
	}
	return bytes.Count(b, []byte("\n"))
}

// realRound runs cases on some real places, each format equally often.
func (a *attack) realRound(t *testing.T, seed uint64, cases int, until time.Time) {
	byFormat := map[string][]string{}
	for _, name := range real() {
		word, _, _ := strings.Cut(name, ":")
		if !chosen(word + "/real") {
			continue
		}
		byFormat[word] = append(byFormat[word], name)
	}
	r := rand.New(rand.NewPCG(seed, 5))
	for _, word := range []string{"carbon", "cfile", "kudu", "redfile", "trevni"} {
		for range min(2, len(byFormat[word])) {
			name := byFormat[word][r.IntN(len(byFormat[word]))]
			if f := a.realFixture(name); f != nil && time.Now().Before(until) {
				a.cast(t, f, seed, cases, until)
			}
		}
	}
}
