package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// TestDragMoment drags the handle of the line of time of a Kudu and of a CarbonData table with the mouse: at the
// release, not before, the moment of the address changes, and the rows that the page then shows are those of stoa cat
// --at.
func TestDragMoment(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		table string
		to    []float64 // parts of the line, from the left, to which the handle is dragged one after the other
	}{
		{"data/kudu#d_major", []float64{0.3, 0.7, 0, 0.05, 1}},
		{"data/carbon#managed_del", []float64{0.33, 0, 0.67, 1}},
	} {
		t.Run(c.table, func(t *testing.T) {
			b := s.open(t, 1280, "light")
			s.view(t, b, view{"table", "table", of(c.table), ".past input"})
			seen := map[string]bool{}
			for _, to := range c.to {
				at := s.drag(t, b, to)
				if (at == "") != (to == 1) {
					t.Errorf("dragged to %v of the line: at is %q", to, at)
				}
				if seen[at] {
					t.Errorf("dragged to %v of the line: at is %q, as before", to, at)
				}
				seen[at] = true
				s.rowsAt(t, b, c.table, at)
				s.view(t, b, view{"table", "table", of(c.table, "at", at), ".past input"})
			}
			b.check(t)
		})
	}
}

// handlePlace is where the middle of the handle is, the left and right ends of its way, and its height. A handle is as
// wide as the input is high.
const handlePlace = `(() => {
	const e = document.querySelector('.past input');
	e.scrollIntoView({block: 'center'});
	const r = e.getBoundingClientRect(), half = r.height / 2, way = r.width - r.height;
	const part = (e.value - e.min) / (e.max - e.min);
	return JSON.stringify([r.left + half + way * part, r.left + half, r.right - half, r.top + half]);
})()`

// drag presses the mouse on the handle, moves it in steps, and lets go; it returns the moment of the address then.
func (s *site) drag(t *testing.T, b *tab, part float64) string {
	t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](handlePlace))
	var p [4]float64
	if err == nil {
		err = json.Unmarshal([]byte(text), &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	from, to, y := p[0], p[1]+(p[2]-p[1])*part, p[3]
	mouse := func(typ input.DispatchMouseEventType, x float64, o ...chromedp.MouseOption) {
		t.Helper()
		if err := chromedp.Do(b.ctx, chromedp.MouseEvent(typ, x, y, o...)); err != nil {
			t.Fatal(err)
		}
	}
	state := func() (hash, said string) {
		t.Helper()
		text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](
			"location.hash + '\\n' + document.querySelector('.past output').textContent"))
		if err != nil {
			t.Fatal(err)
		}
		hash, said, _ = strings.Cut(text, "\n")
		return hash, said
	}
	before, saidBefore := state()
	left := chromedp.ButtonType(input.MouseButtonLeft)
	held := func(p *input.DispatchMouseEventParams) { p.Buttons = 1 }
	mouse(chromedp.MouseMoved, from)
	mouse(chromedp.MousePressed, from, left, held, chromedp.ClickCount(1))
	for i := 1; i <= 8; i++ {
		mouse(chromedp.MouseMoved, from+(to-from)*float64(i)/8, left, held)
	}
	during, saidHeld := state()
	if during != before {
		t.Errorf("the address changed to %s before the mouse was let go", during)
	}
	if saidHeld == saidBefore {
		t.Errorf("dragged from %v to %v: the page still says %q", from, to, saidHeld)
	}
	mouse(chromedp.MouseReleased, to, left, chromedp.ClickCount(1))
	err = chromedp.Do(b.ctx, chromedp.Poll[chromedp.Void](fmt.Sprintf("location.hash !== %q", before),
		chromedp.WithPollingTimeout(10*time.Second)))
	if err != nil {
		t.Fatalf("dragged to %v of the line, the address stays %s: %v", part, before, err)
	}
	after, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("location.hash"))
	if err != nil {
		t.Fatal(err)
	}
	_, q, _ := strings.Cut(after, "?")
	values, err := url.ParseQuery(q)
	if err != nil {
		t.Fatal(err)
	}
	return values.Get("at")
}

// rowsAt compares the first rows that the page shows with those of stoa cat --at.
func (s *site) rowsAt(t *testing.T, b *tab, table, at string) {
	t.Helper()
	stoa := func(args ...string) string {
		t.Helper()
		if at != "" {
			args = append(args, "--at", at)
		}
		cmd := exec.Command(s.stoa, args...)
		cmd.Dir = s.work
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("stoa %v: %v\n%s", args, err, &errs)
		}
		return string(out)
	}
	var want [][]string
	for line := range strings.Lines(stoa("cat", table, "-f", "jsonl")) {
		want = append(want, cellsOf(t, line))
	}
	if n := strings.TrimSpace(stoa("count", table)); n != fmt.Sprint(len(want)) {
		t.Errorf("at %q: stoa count says %s, stoa cat has %d rows", at, n, len(want))
	}
	s.view(t, b, view{"rows", "rows", of(table, "at", at, "raw", "true"), "main .scroll"})
	err := chromedp.Do(b.ctx, chromedp.Poll[chromedp.Void](fmt.Sprintf(
		"document.querySelectorAll('.scroll tbody tr').length >= %d", min(20, len(want))),
		chromedp.WithPollingTimeout(20*time.Second)))
	if err != nil {
		t.Errorf("at %q: fewer rows are shown than the %d there are: %v", at, min(20, len(want)), err)
	}
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`JSON.stringify({
		text: document.querySelector('main').innerText,
		rows: [...document.querySelectorAll('.scroll tbody tr')].slice(0, 200).map(
			(r) => [...r.children].map((c) => c.textContent))})`))
	var got struct {
		Text string
		Rows [][]string
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &got)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s at %q: %d rows, %d shown", table, at, len(want), len(got.Rows))
	for i, row := range got.Rows {
		if i >= len(want) || len(row) != len(want[i])+1 || strings.Join(row[1:], "|") != strings.Join(want[i], "|") {
			t.Fatalf("at %q: row %d is %q, want %q", at, i, row, want[min(i, len(want)-1)])
		}
	}
	if len(got.Rows) == 0 && len(want) > 0 {
		t.Errorf("at %q: no rows, want %d: %s", at, len(want), got.Text)
	}
}

// cellsOf are the cells of a row that stoa cat wrote as JSON, in the order of the columns.
func cellsOf(t *testing.T, line string) []string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	if _, err := d.Token(); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	var row []string
	for d.More() {
		var cell json.RawMessage
		_, err := d.Token()
		if err == nil {
			err = d.Decode(&cell)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		row = append(row, string(cell))
	}
	return row
}
