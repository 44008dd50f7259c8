package page

import (
	"fmt"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// builtSite returns the directory of the documents as a static site: DOCS_SITE, or a new one.
func builtSite(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("DOCS_SITE"); dir != "" {
		return dir
	}
	cmd := exec.Command("make", "-C", "../..", "site")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make site: %v\n%s", err, out)
	}
	dir, err := filepath.Abs("../../dist/site")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var heading = regexp.MustCompile(`(?s)<h1>(.*?)<a class="headerlink"`)
var tag = regexp.MustCompile(`<[^>]*>`)

// headings returns the heading of each page below dir, by its path.
func headings(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(name) != ".html" {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if m := heading.FindSubmatch(b); m != nil {
			out[filepath.ToSlash(rel)] = html.UnescapeString(tag.ReplaceAllString(string(m[1]), ""))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSiteSearch: without a server, what is typed into the search box of the documents finds the right page: of each
// document its heading, and some words that only one page explains. A click on the result shows that page.
func TestSiteSearch(t *testing.T) {
	dir := builtSite(t)
	s := &site{address: "file://", browser: browser(t)}
	b := s.open(t, 1280, "light")
	address := (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir) + "/"}).String()
	words := map[string]string{ // a word, and the page that is about it
		"tablestatus": "docs/formats/carbon.html",
		"bitshuffle":  "docs/formats/cfile.html", "kudu.wal.missing": "docs/findings/kudu.html",
		"array_contains": "docs/predicates.html", "ADBC": "docs/flight.html",
	}
	n := 0
	for page, title := range headings(t, dir) {
		if strings.HasPrefix(page, "docs/") && strings.Count(title, " ") < 6 {
			words[title] = page
			n++
		}
	}
	if n < 30 {
		t.Errorf("only %d documents have a heading", n)
	}
	for typed, page := range words {
		if _, err := os.Stat(filepath.Join(dir, page)); err != nil {
			t.Error(err)
			continue
		}
		if err := s.search(b, address, typed, page); err != nil {
			t.Errorf("%q: %v", typed, err)
		}
	}
	b.check(t)
}

// search types words into the search box of the first page, and clicks on the result that is page.
func (s *site) search(b *tab, address, typed, page string) error {
	err := chromedp.Do(b.ctx, chromedp.Navigate(address+"index.html"),
		chromedp.SendKeys(chromedp.CSS("input[name=q]"), typed+"\r"))
	if err != nil {
		return err
	}
	err = b.until("location.pathname.endsWith('/search.html') && " +
		"/\\d/.test(document.querySelector('#search-results .search-summary').textContent)")
	if err != nil {
		return fmt.Errorf("no results came: %w", err)
	}
	const links = "[...document.querySelectorAll('#search-results ul.search li > a')]"
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](links+
		".map((a) => new URL(a.href).pathname).join('\\n')"))
	if err != nil {
		return err
	}
	const near = 10 // results on the first screen
	place := 1 + slices.IndexFunc(strings.Split(found, "\n"),
		func(l string) bool { return strings.HasSuffix(l, "/"+page) })
	if place == 0 || place > near {
		return fmt.Errorf("%s is result %d of\n%s", page, place, found)
	}
	_, err = chromedp.Run(b.ctx, chromedp.Evaluate[bool](fmt.Sprintf("(%s[%d].click(), true)", links, place-1)))
	if err != nil {
		return err
	}
	return b.until(fmt.Sprintf("location.pathname.endsWith(%q) && !!document.querySelector('h1')", "/"+page))
}

// until waits until a condition holds in whatever page the tab then shows. While it goes to another page it answers
// with errors.
func (b *tab) until(condition string) (err error) {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var ok bool
		if ok, err = chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+condition+")")); ok && err == nil {
			return nil
		}
		if err = b.ctx.Err(); err != nil {
			return err
		}
	}
	return fmt.Errorf("after 30 s it was not true that %s", condition)
}
