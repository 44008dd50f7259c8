package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNamedTestsExist: CI runs some tests by name: with the race detector (MEETING in the Makefile), and without
// kernels (.ci/run). A name that no test has any more would run nothing, and pass.
func TestNamedTestsExist(t *testing.T) {
	makefile := strings.NewReplacer("$\\\n", "", "$$", "$").Replace(file(t, "../Makefile"))
	ci := regexp.MustCompile(`\{([a-z,]+)\}`).ReplaceAllString(file(t, "../.ci/run"), "$1")
	for _, c := range []struct{ what, list, dirs string }{
		{"MEETING in the Makefile", part(t, makefile, `MEETING \?= \^Test\(([A-Za-z|]+)\)\$`),
			part(t, makefile, `MEET \?= (.+)`)},
		{"kernels in .ci/run", part(t, ci, `-run '\^Test\(([A-Za-z|]+)\)\$'`),
			"./format/" + strings.ReplaceAll(part(t, ci, `-run '.+' "\$@" \./format/([a-z,]+)`), ",", " ./format/")},
	} {
		names := strings.Split(c.list, "|")
		have := map[string][]string{}
		for dir := range strings.FieldsSeq(c.dirs) {
			files, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
			if err != nil || len(files) == 0 {
				t.Fatalf("%s: no tests in %s: %v", c.what, dir, err)
			}
			for _, name := range files {
				for _, m := range regexp.MustCompile(`(?m)^func Test(\w+)\(`).FindAllStringSubmatch(file(t, name), -1) {
					have[m[1]] = append(have[m[1]], dir)
				}
			}
			if !slices.ContainsFunc(names, func(n string) bool { return slices.Contains(have[n], dir) }) {
				t.Errorf("%s: no test of %s is named", c.what, dir)
			}
		}
		for _, n := range names {
			if have[n] == nil {
				t.Errorf("%s: expected a test Test%s in one of %s, found none", c.what, n, c.dirs)
			}
		}
	}
}

func file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func part(t *testing.T, text, pattern string) string {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("expected a match of %s, found none", pattern)
	}
	return m[1]
}
