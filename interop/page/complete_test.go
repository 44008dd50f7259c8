package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestFilterCompletion types into the filter: the words that are offered continue what was typed, are columns where a
// column can stand, and comparisons after one; a filter made of them is one that the command accepts, too.
func TestFilterCompletion(t *testing.T) {
	s := newSite(t)
	b := s.open(t, 1280, "light")
	s.view(t, b, view{"rows", "rows", of("data/sales.parquet"), ".scroll tbody td"})
	for _, c := range []struct {
		typed string
		want  string // what is offered, without what was typed before the word
	}{
		{"", "day|price|name|amount"},
		{"p", "price"},
		{"A", "amount"},
		{"x", ""},
		{"price ", "=|<|>|<=|>=|!=|is null|is not null|in (|like |between |and |or "},
		{"price > 3 a", "and "},
		{"price > 3 and ", "day|price|name|amount"},
		{"price > 3 and n", "name"},
		{"not (d", "day"},
		{"name is", "is null|is not null"},
	} {
		got := s.offered(t, b, c.typed)
		begin := c.typed[:strings.LastIndexAny(c.typed, " (")+1]
		var want []string
		for _, w := range strings.Split(c.want, "|") {
			if c.want != "" {
				want = append(want, begin+w)
			}
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("after %q: offered are %q, want %q", c.typed, got, want)
		}
	}
	b.check(t)
}

// offered types a filter as a person does, key by key, and returns what the browser has to offer.
func (s *site) offered(t *testing.T, b *tab, typed string) (words []string) {
	t.Helper()
	const input = "form.bar input[name=where]"
	err := chromedp.Do(b.ctx, chromedp.Evaluate[chromedp.Void](
		"(() => { const e = document.querySelector('"+input+"'); e.value = '?'; e.focus(); e.select(); })()"))
	if err == nil && typed == "" {
		err = chromedp.Do(b.ctx, chromedp.KeyEvent("\b"))
	} else if err == nil {
		err = chromedp.Do(b.ctx, chromedp.KeyEvent(typed))
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](
		"((e) => [e.value, e.list.id, ...[...e.list.options].map((o) => o.value)].join('\\n'))"+
			"(document.querySelector('"+input+"'))"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text, "\n")
	if lines[0] != typed || lines[1] != "columns" {
		t.Fatalf("typed %q: the filter is %q, %q", typed, lines[0], lines[1])
	}
	return lines[2:]
}

// TestErrorsAtThePlace: a filter that is wrong is shown with a mark below the place of the mistake, by characters, not
// bytes; what the error says is what stoa count says; and a filter that is mended takes the error away.
func TestErrorsAtThePlace(t *testing.T) {
	s := newSite(t)
	for _, theme := range []string{"light", "dark"} {
		b := s.open(t, 390, theme)
		for _, c := range []struct {
			where string
			at    string // the rest of the filter, from the mistake on
		}{
			{"price >> 900", "> 900"},
			{"price > 900 and naem = 'abel'", "naem = 'abel'"},
			{"name = 'ж€😀' and day > 'x", "'x"},
			{"name = 'ж€😀' and nothing = 1", "nothing = 1"},
			{"price >", ""},
			{"(price > 3", ""},
		} {
			s.view(t, b, view{"rows", "rows", of("data/sales.parquet", "where", c.where), ".at-error pre"})
			text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](
				"document.querySelector('.at-error pre').textContent"))
			if err != nil {
				t.Fatal(err)
			}
			line, mark, _ := strings.Cut(text, "\n")
			before, said, found := strings.Cut(mark, "^ ")
			want := len([]rune(strings.TrimSuffix(c.where, c.at)))
			if !found || line != c.where || len([]rune(before)) != want || strings.TrimSpace(before) != "" {
				t.Errorf("%s: want the mark below character %d:\n%s", c.where, want, text)
			}
			_, errs := s.says(t, 2, "count", "data/sales.parquet", "--where", c.where)
			if !strings.Contains(errs, said) {
				t.Errorf("%s: the page says %q, and the command\n%s", c.where, said, errs)
			}
			b.mu.Lock()
			b.bad = nil // the refusal is in the browser's log, too
			b.mu.Unlock()
		}
		err := chromedp.Do(b.ctx, chromedp.Evaluate[chromedp.Void](
			"document.querySelector('form.bar input[name=where]').value = 'price > 900'"),
			chromedp.Click(chromedp.CSS("form.bar button")), chromedp.Poll[chromedp.Void](
				"!document.querySelector('.at-error').firstChild && !!document.querySelector('.scroll tbody td')",
				chromedp.WithPollingTimeout(20*time.Second)))
		if err != nil {
			t.Error(err)
		}
		b.check(t)
	}
}

// TestTableIsCounted: of a table that does not say how many rows it has, the page says how many stoa count finds; of a
// damaged one it says none.
func TestTableIsCounted(t *testing.T) {
	s := newSite(t)
	b := s.open(t, 1280, "light")
	facts := func(table string) string {
		t.Helper()
		s.view(t, b, view{"table", "table", of(table), ".treemap"})
		text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](
			"[...document.querySelectorAll('.facts > *')].map((e) => e.textContent).join('|')"))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const table = "data/carbon#managed_del"
	rows, _ := s.says(t, 0, "count", table)
	want := "rows" + strings.TrimSpace(rows) // as the label and its figure follow each other
	got := ""
	for end := time.Now().Add(20 * time.Second); !strings.Contains(got, want) && time.Now().Before(end); {
		got = strings.ReplaceAll(facts(table), "|", "")
	}
	if !strings.Contains(got, want) || strings.Contains(got, "not known") {
		t.Errorf("the page says %q, and the command has %s rows", got, rows)
	}
	b.check(t)
	data, err := filepath.Glob(filepath.Join(s.work, "data/carbon/managed_del/Fact/Part0/Segment_0/*.carbondata"))
	if err != nil || len(data) == 0 {
		t.Fatal(data, err)
	}
	if err := os.Truncate(data[0], 20); err != nil {
		t.Fatal(err)
	}
	b = s.open(t, 1280, "light")
	for range 3 {
		if got := facts(table); !strings.Contains(got, "rows|not known") && !strings.Contains(got, "rowsnot known") {
			t.Errorf("damaged, the page says %q", got)
		}
	}
}
