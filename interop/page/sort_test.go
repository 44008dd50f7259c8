package page

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestSortLoaded sorts what is loaded of a long table by a click on the head of a column, and returns to all rows.
func TestSortLoaded(t *testing.T) {
	s := newSite(t)
	b := s.open(t, 1280, "light")
	s.view(t, b, view{"rows", "rows", of("data/sales.parquet"), ".scroll tbody td"})
	const cells = "[...document.querySelectorAll('.scroll tbody tr')].map((r) => r.children[%d].textContent).join('|')"
	err := chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS("thead th:nth-child(3) button")),
		chromedp.Poll[chromedp.Void]("document.querySelector('.end').textContent.includes('that are loaded, sorted')",
			chromedp.WithPollingTimeout(20*time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`(() => {
		const n = [...document.querySelectorAll('.scroll tbody tr')].map((r) => Number(r.children[2].textContent));
		return n.length + ' ' + n.every((x, i) => !i || n[i - 1] <= x);
	})()`))
	if err != nil || got != "100 true" && got != "200 true" {
		t.Errorf("got %q %v, want the rows of the windows that were read, ascending", got, err)
	}
	err = chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS(".end button")), chromedp.Poll[chromedp.Void](
		fmt.Sprintf(cells, 0)+".startsWith('0|1|2|')", chromedp.WithPollingTimeout(20*time.Second)))
	if err != nil {
		t.Error(err)
	}
	b.check(t)
}
