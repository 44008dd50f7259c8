package internal_test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	mdFence   = regexp.MustCompile("(?ms)^[ \t]*(```+)[^\n]*\n.*?^[ \t]*(```+)[ \t]*$|`[^`\n]*`")
	mdLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mdHeading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	mdScheme  = regexp.MustCompile(`^[a-z]+:`)
)

// TestLinks: each link of a document leads to a file, and to a heading of it, that is there; each page below docs can
// be reached from the README.
func TestLinks(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "-C", "..", "ls-files", "-z", "-co", "--exclude-standard",
		"*.md").Output()
	if err != nil {
		t.Skip("the documents are listed by git, which is not here: ", err)
	}
	pages := map[string]string{}
	for _, name := range strings.Split(strings.Trim(string(out), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join("..", name))
		if err == nil && !strings.Contains(name, "testdata/") {
			pages[name] = string(b)
		}
	}
	leads, n := map[string][]string{}, 0
	for name, text := range pages {
		for _, m := range mdLink.FindAllStringSubmatch(mdFence.ReplaceAllString(text, ""), -1) {
			if mdScheme.MatchString(m[1]) {
				continue
			}
			to, wrong := followed(pages, name, m[1])
			if wrong != "" {
				t.Errorf("%s: %s: %s", name, m[1], wrong)
			}
			leads[name] = append(leads[name], to)
			n++
		}
	}
	if len(pages) < 80 || n < 300 {
		t.Errorf("only %d documents with %d links were found", len(pages), n)
	}
	seen, next := map[string]bool{}, []string{"README.md"}
	for len(next) > 0 {
		page := next[0]
		if next = next[1:]; !seen[page] {
			seen[page] = true
			next = append(next, leads[page]...)
		}
	}
	for name := range pages {
		dir := path.Dir(name)
		if strings.HasPrefix(name, "docs/") && !seen[name] && !seen[dir] {
			t.Errorf("%s: no link leads there from README.md", name)
		}
	}
}

// followed is where a link of a page leads, and what is wrong with it.
func followed(pages map[string]string, page, link string) (to, wrong string) {
	file, heading, _ := strings.Cut(link, "#")
	if to = page; file != "" {
		to = path.Join(path.Dir(page), file)
	}
	if _, err := os.Stat(filepath.Join("..", to)); err != nil {
		return to, "it is not there"
	}
	text, isPage := pages[to]
	if !isPage || heading == "" {
		return to, ""
	}
	for _, m := range mdHeading.FindAllStringSubmatch(mdFence.ReplaceAllStringFunc(text, inline), -1) {
		if slug(m[1]) == heading {
			return to, ""
		}
	}
	return to, "no heading is named so"
}

// inline leaves out blocks of code, whose lines may begin with #, and keeps code within a line.
func inline(s string) string {
	if strings.Contains(s, "\n") {
		return ""
	}
	return s
}

// slug is the anchor of a heading, as GitHub and the site have it.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}
