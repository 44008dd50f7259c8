package page

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// site is a running stoa serve, and a browser.
type site struct {
	address string // http://127.0.0.1:port/
	dir     string // what it serves
	axe     string // the source of axe-core
	browser context.Context

	work, stoa string // where the files are made, and the program
}

// programs is where stoa and stoa-sql are, built once for all tests.
var programs string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "page")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs = dir
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

var build sync.Once

// newSite serves the tables of newFiles, and has a browser.
func newSite(t *testing.T) *site {
	t.Helper()
	s := newFiles(t)
	s.address = served(t, s.work, s.stoa, "data", "--allow-write", "saved")
	s.axe, s.browser = axe(t), browser(t)
	return s
}

// newFiles makes tables of each format, healthy and damaged.
func newFiles(t *testing.T) *site {
	t.Helper()
	work := t.TempDir()
	stoa := filepath.Join(programs, "stoa")
	build.Do(func() {
		run(t, "../..", "go", "build", "-o", stoa, "./cmd/stoa")
		run(t, "../../sql", "env", "CGO_ENABLED=1", "go", "build", "-o", stoa+"-sql", ".")
	})
	run(t, work, stoa, "demo", "data", "--damage")
	if err := os.WriteFile(filepath.Join(work, "sales.csv"), sales(), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"sales.parquet", "sales.arrow", "price.cfile"} {
		args := []string{"convert", "-q", "sales.csv", "--source-opt", "header=true", "-o", "data/" + to}
		if to == "sales.parquet" {
			args = append(args, "--opt", "row-group-rows=2000")
		}
		if to == "price.cfile" {
			args = append(args, "--columns", "price")
		}
		run(t, work, stoa, args...)
	}
	b, err := os.ReadFile(filepath.Join(work, "data/sales.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/3] ^= 0x55
	if err := os.WriteFile(filepath.Join(work, "data/damaged/sales.parquet"), b, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(work, "saved"), 0o777); err != nil {
		t.Fatal(err)
	}
	return &site{dir: "data", work: work, stoa: stoa}
}

// says runs stoa, which must end with a status, and returns what it prints.
func (s *site) says(t *testing.T, status int, args ...string) (out, errs string) {
	t.Helper()
	cmd := exec.Command(s.stoa, args...)
	cmd.Dir = s.work
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != status {
		t.Errorf("stoa %q: %v, want status %d\n%s", args, err, status, &e)
	}
	return o.String(), e.String()
}

// sales is a table of 20,000 rows in the order of their days.
func sales() []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "day,price,name,amount")
	for i := range 20_000 {
		day := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i/50)
		fmt.Fprintf(&b, "%s,%d.%02d,%s,%d\n", day.Format(time.DateOnly), i*i%977, i%100,
			[]string{"anna", "abel", "ben", "carla", ""}[i*i%5], i*7%100)
	}
	return b.Bytes()
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

// served starts the server, and ends it with the test by an interrupt, after which its status must be 0.
func served(t *testing.T, dir, stoa string, args ...string) string {
	t.Helper()
	cmd := exec.Command(stoa, append([]string{"serve"}, args...)...)
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("after an interrupt: %v", err)
		}
		if strings.Contains(errs.String(), "a bug") {
			t.Errorf("it said: %s", &errs)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, &errs)
	}
	return strings.TrimSpace(line)
}

// axe returns the source of axe-core, fetched by npm.
func axe(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, "npm", "pack", "--silent", "axe-core")
	found, err := filepath.Glob(filepath.Join(dir, "axe-core-*.tgz"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	f, err := os.Open(found[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err != nil {
			t.Fatalf("axe.min.js is not in the package: %v", err)
		}
		if h.Name == "package/axe.min.js" {
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
	}
}

func browser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatalf("a browser is needed (apt-get install chromium): %v", err)
	}
	return ctx
}

// tab is a page in the browser that collects what goes wrong in it.
type tab struct {
	ctx context.Context
	mu  sync.Mutex
	bad []string
}

const tabTime = 10 * time.Minute

// open opens a tab of a width, in a theme.
func (s *site) open(t *testing.T, width int64, theme string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(s.browser)
	t.Cleanup(cancel)
	ctx, late := context.WithTimeout(ctx, tabTime) // what never comes is waited for without an end
	t.Cleanup(late)
	b := &tab{ctx: ctx}
	size := []chromedp.EmulateViewportOption{}
	if width < 600 {
		size = append(size, chromedp.EmulateMobile)
	}
	err := chromedp.Do(ctx, chromedp.Navigate("about:blank"), chromedp.EmulateViewport(width, 900, size...),
		chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
			_, err1 := cdp.Call(ctx, to, network.Enable, network.EnableParams{})
			_, err2 := cdp.Call(ctx, to, log.Enable, cdp.Empty{})
			_, err3 := cdp.Call(ctx, to, runtime.Enable, cdp.Empty{})
			_, err4 := cdp.Call(ctx, to, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
			return errors.Join(err1, err2, err3, err4)
		}))
	if err == nil {
		err = chromedp.Listen(ctx, func(event any) { b.listen(s, event) })
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// listen notes errors of JavaScript, violations of the content security policy, and requests to anything else.
func (b *tab) listen(s *site, event any) {
	note := func(format string, args ...any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.bad = append(b.bad, fmt.Sprintf(format, args...))
	}
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		d := e.ExceptionDetails
		note("an exception: %s at %s:%d", d.Text, d.URL, d.LineNumber+1)
		if d.Exception != nil {
			note("%s", d.Exception.Description)
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			note("the console: %s %v", e.Type, e.Args)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			note("the log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, s.address) && !strings.HasPrefix(u, "data:") &&
			!strings.HasPrefix(u, "file:") && u != "about:blank" {
			note("a request to %s", u)
		}
	}
}

func (b *tab) check(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.bad {
		t.Error(s)
	}
	b.bad = nil
}

// view goes to a view and waits until it is drawn.
func (s *site) view(t *testing.T, b *tab, v view) {
	t.Helper()
	q := url.Values{"place": {s.dir}}
	for k, x := range v.params {
		q.Set(k, x)
	}
	wait := "!document.querySelector('main').hasAttribute('aria-busy') && !document.querySelector('.wait') && " +
		"!!document.querySelector(" + fmt.Sprintf("%q", v.ready) + ")"
	err := chromedp.Do(b.ctx, chromedp.Navigate("about:blank"),
		chromedp.Navigate(s.address+"#/"+v.view+"?"+q.Encode()),
		chromedp.Poll[chromedp.Void](wait, chromedp.WithPollingTimeout(30*time.Second)))
	if err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		t.Fatalf("%s: %v\n%s", v.name, err, text)
	}
}

// wide fails if the page is wider than the window: then one has to scroll sideways to read it.
func (b *tab) wide(t *testing.T) {
	t.Helper()
	over, err := chromedp.Run(b.ctx, chromedp.Evaluate[int]("document.documentElement.scrollWidth - innerWidth"))
	if err != nil {
		t.Fatal(err)
	}
	if over > 0 {
		t.Errorf("the page is %d pixels wider than the window", over)
	}
}

// accessible runs axe-core.
func (s *site) accessible(t *testing.T, b *tab) {
	t.Helper()
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct {
			HTML           string
			FailureSummary string
		}
	}
	err := chromedp.Do(b.ctx, chromedp.Evaluate[chromedp.Void](s.axe))
	if err != nil {
		t.Fatal(err)
	}
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](
		"axe.run(document, {resultTypes: ['violations']}).then((r) => JSON.stringify(r.violations))",
		chromedp.EvalAwaitPromise))
	if err == nil {
		err = json.Unmarshal([]byte(text), &found)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		for i, n := range v.Nodes {
			if i < 3 {
				t.Errorf("%s (%s): %s: %.200s\n%s", v.ID, v.Impact, v.Help, n.HTML, n.FailureSummary)
			}
		}
	}
}

// picture keeps a picture in the directory that PAGE_PICTURES names, for a person to look at.
func (b *tab) picture(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("PAGE_PICTURES")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = errors.Join(os.MkdirAll(dir, 0o777), os.WriteFile(filepath.Join(dir, name+".png"), png, 0o666))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFilePage opens a page of one file, of a healthy and of a damaged one, from the disk: the map is drawn, the damage
// is named, and bytes are shown.
func TestFilePage(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ file, says string }{{"data/key.cfile", ".good"}, {"data/damaged/key.cfile", ".problem"},
		{"data/flat.red", ".good"}} {
		name := filepath.Join(s.work, strings.ReplaceAll(c.file, "/", "-")+".html")
		run(t, s.work, s.stoa, "describe", c.file, "-f", "html", "-o", name)
		for _, width := range []int64{1280, 390} {
			b := s.open(t, width, "light")
			err := chromedp.Do(b.ctx, chromedp.Navigate("file://"+name), chromedp.Poll[chromedp.Void](
				"!!document.querySelector('"+c.says+"') && document.querySelectorAll('.tree li').length > 1",
				chromedp.WithPollingTimeout(30*time.Second)),
				chromedp.Click(chromedp.CSS(".tree li:last-child button.plain")),
				chromedp.Poll[chromedp.Void]("document.querySelectorAll('.byte').length > 3",
					chromedp.WithPollingTimeout(10*time.Second)))
			if err != nil {
				text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
				t.Fatalf("%s: %v\n%s\n%v", c.file, err, text, b.bad)
			}
			b.wide(t)
			s.accessible(t, b)
			b.picture(t, fmt.Sprintf("file-%s-%d", strings.ReplaceAll(c.file, "/", "-"), width))
			b.check(t)
		}
	}
}

// view is a view of something.
type view struct {
	name, view string
	params     map[string]string
	ready      string // is there when it is drawn
}

func of(name string, more ...string) map[string]string {
	p := map[string]string{"name": name}
	for i := 0; i < len(more); i += 2 {
		p[more[i]] = more[i+1]
	}
	return p
}

// views are all views, on healthy and damaged files of each format.
var views = []view{
	{"place", "place", of("data"), "tbody tr"},
	{"place-kudu", "place", of("data/kudu"), ".state"},
	{"files", "files", of("data"), ".treemap .area"},
	{"table-carbon", "table", of("data/carbon#managed_del"), ".timeline"},
	{"table-past", "table", of("data/kudu#d_major", "at", "2026-11-21T07:39:00Z"), ".past input"},
	{"table-parquet", "table", of("data/sales.parquet"), ".treemap .area"},
	{"table-kudu", "table", of("data#d_major"), ".treemap .area"},
	{"table-red", "table", of("data/flat.red"), ".treemap .area"},
	{"rows-parquet", "rows", of("data/sales.parquet"), ".scroll tbody td"},
	{"rows-filter", "rows", of("data/sales.parquet", "where", "price > 900 and name = 'abel'"), ".scroll tbody td"},
	{"rows-wrong", "rows", of("data/sales.parquet", "where", "price >> 900"), ".at-error pre"},
	{"rows-damaged", "rows", of("data/damaged/key.cfile", "row", "128"), ".scroll .lost"},
	{"anatomy-cfile", "anatomy", of("data/key.cfile"), ".good"},
	{"anatomy-cfile-damaged", "anatomy", of("data/damaged/key.cfile", "offset", "540"), ".hex"},
	{"anatomy-trevni-damaged", "anatomy", of("data/damaged/primitives.trv"), ".problem"},
	{"anatomy-red", "anatomy", of("data/flat.red"), ".good"},
	{"anatomy-parquet", "anatomy", of("data/sales.parquet", "offset", "10"), ".hex"},
	{"anatomy-parquet-damaged", "anatomy", of("data/damaged/sales.parquet"), ".problem"},
	{"anatomy-arrow", "anatomy", of("data/sales.arrow"), ".tree li"},
	{"anatomy-cut", "anatomy", of("data/damaged/cut.cfile"), ".problem"},
	{"values-number", "values", of("data/sales.parquet", "column", "price"), ".chart"},
	{"values-text", "values", of("data/sales.parquet", "column", "name"), ".chart"},
	{"values-day", "values", of("data/sales.parquet", "column", "day"), ".chart"},
	{"explain", "explain", of("data/sales.parquet", "where", "day = date '2024-02-29'", "columns", "day,price"),
		"canvas"},
	{"sql", "sql", of("data/sales.parquet", "query", "select name, count(*) as n, max(price) as most\n"+
		"from 'data/sales.parquet'\ngroup by all order by n desc"), ".said"},
	{"sql-wrong", "sql", of("data/sales.parquet", "query", "selec 1"), ".problem"},
	{"verify", "verify", of("data/damaged/key.cfile"), "form"},
	{"recover", "recover", of("data/damaged/key.cfile"), "form"},
	{"diff", "recover", of("data/key.cfile", "other", "data/damaged/key.cfile"), ".said"},
	{"verify-place", "verify", of("data"), "form"},
}

// TestViews draws every view in both themes and widths: no error of JavaScript, nothing asked of anybody else, no
// sideways scrolling, and no violation that axe-core finds.
func TestViews(t *testing.T) {
	s := newSite(t)
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			b := s.open(t, width, theme)
			for _, v := range views {
				if only := os.Getenv("PAGE_VIEWS"); only != "" && !strings.Contains(v.name, only) {
					continue
				}
				name := fmt.Sprintf("%s-%s-%d", v.name, theme, width)
				t.Run(name, func(t *testing.T) {
					s.view(t, b, v)
					if v.view == "verify" {
						err := chromedp.Do(b.ctx, chromedp.Click(chromedp.CSS("form button")),
							chromedp.Poll[chromedp.Void]("!!document.querySelector('.said')",
								chromedp.WithPollingTimeout(time.Minute)))
						if err != nil {
							t.Fatal(err)
						}
					}
					b.wide(t)
					s.accessible(t, b)
					b.picture(t, name)
					if v.name == "rows-wrong" { // the refusal is in the browser's log, too
						b.bad = nil
					}
					b.check(t)
				})
			}
		}
	}
}
