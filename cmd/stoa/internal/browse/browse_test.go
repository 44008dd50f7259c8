package browse_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/gdamore/tcell/v2"

	"stoa/cmd/stoa/internal/browse"
	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/serving"
	"stoa/cmd/stoa/verbs"
	"stoa/serve"
)

// command runs a verb.
func command(t *testing.T, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if st, err := verbs.Run(context.Background(), args, strings.NewReader(""), io.Discard, &out); st != 0 {
		t.Fatalf("%v: %v %s", args, err, &out)
	}
}

// drive shows a place.
func drive(t *testing.T, place, name string, w, h int) *browse.Driven {
	t.Helper()
	a := cli.NewApp(strings.NewReader(""), io.Discard, io.Discard)
	c, err := serving.Config(a, verbs.RunApp, []string{place}, "64MiB")
	if err != nil {
		t.Fatal(err)
	}
	c.Log = func(s string) { t.Errorf("%s: %s", name, s) }
	s, err := serve.New(c)
	if err != nil {
		t.Fatal(err)
	}
	d := browse.Drive(context.Background(), s, place, name, w, h)
	t.Cleanup(func() { d.Close(); s.Close() })
	return d
}

// columnar are the formats that are looked at, and what their files are called.
var columnar = map[string]string{"parquet": "t.parquet", "redfile": "t.red", "trevni": "t.trv", "cfile": "t.cfile/",
	"carbon": "t.carbon/", "kudu-fs": "t.kudu/", "arrow": "t.arrow"}

const made = 3000 // rows

// make writes a table of known rows, row i being i and "name i", in a format, and returns its place.
func makeTable(t *testing.T, form string) string {
	t.Helper()
	dir := t.TempDir()
	var csv bytes.Buffer
	csv.WriteString("id,name\n")
	for i := range made {
		fmt.Fprintf(&csv, "%d,name %d\n", i, i)
	}
	from := filepath.Join(dir, "t.csv")
	if err := os.WriteFile(from, csv.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "out", columnar[form])
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	args := []string{"convert", from, "-o", to, "--to", form}
	if form == "kudu-fs" {
		args = append(args, "--opt", "table=t", "--opt", "key=id")
	}
	command(t, args...)
	return strings.TrimSuffix(to, "/")
}

// visit presses keys that lead through every view, on a screen that may be small, and returns the screens.
func visit(d *browse.Driven) (screens []string) {
	show := func(keys ...any) {
		d.Press(keys...)
		screens = append(screens, d.Screen())
	}
	show()
	for d.Depth() == 1 && len(screens) < 2 {
		show(tcell.KeyEnter)
	}
	show("1")
	show(tcell.KeyPgDn, tcell.KeyEnd, tcell.KeyRight)
	show(tcell.KeyEnter, tcell.KeyDown)
	show(tcell.KeyEnter)
	show(tcell.KeyEscape, tcell.KeyEscape, "r")
	show("2", tcell.KeyEnd, tcell.KeyEnter)
	show(tcell.KeyEscape, "3", tcell.KeyEnter, tcell.KeyDown)
	show(tcell.KeyEnter, tcell.KeyEnter)
	show(tcell.KeyEnd, "/", "0x10", tcell.KeyEnter)
	show(tcell.KeyEnter)
	for d.Depth() > 2 {
		show(tcell.KeyEscape)
		if len(screens) > 40 {
			break
		}
	}
	show("4", tcell.KeyEnter)
	show(tcell.KeyEscape, "?")
	show(tcell.KeyEscape, tcell.KeyTab, tcell.KeyBacktab)
	return screens
}

// TestRows: of every format the rows on the screen are those that were written, at the beginning, in the middle and at
// the end, and those that pass a filter.
func TestRows(t *testing.T) {
	for form := range columnar {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			place := makeTable(t, form)
			d := drive(t, place, place, 80, 24)
			if d.Depth() == 1 {
				d.Press(tcell.KeyEnter)
			}
			d.Press("1")
			has := func(what string, ids ...int) {
				t.Helper()
				seen := d.Screen()
				for _, id := range ids {
					found := false
					for _, l := range d.Lines() {
						found = found || strings.HasSuffix(strings.TrimRight(l, " "), fmt.Sprintf("%d name %d", id, id))
					}
					if !found {
						t.Fatalf("%s: row %d is not on the screen:\n%s", what, id, seen)
					}
				}
			}
			has("at the beginning", 0, 1, 19)
			d.Press(tcell.KeyEnd)
			has("at the end", made-1, made-20)
			d.Press("g", "1234", tcell.KeyEnter)
			has("in the middle", 1234)
			d.Press("/", "id >= 2000 and name like '%7'", tcell.KeyEnter)
			has("with a filter", 2007, 2017)
			d.Press(tcell.KeyEnd, tcell.KeyEnd)
			has("at the end of a filter", 2997)
			d.Press("/", tcell.KeyCtrlU, "id >=", tcell.KeyEnter)
			lines := d.Lines()
			// the mark is below the end of the predicate, where something is missing
			if mark := strings.IndexByte(lines[23], '^'); mark != len("where id >=") {
				t.Errorf("an error of a filter is marked at %d:\n%s", mark, d.Screen())
			}
			d.Press(tcell.KeyEscape, "4")
			if s := d.Screen(); !strings.Contains(s, "no damage found") {
				t.Errorf("a healthy table:\n%s", s)
			}
		})
	}
}

// TestEveryViewOfDamage: whatever bytes of a file are damaged, every view on screens of every size is drawn, and ends.
func TestEveryViewOfDamage(t *testing.T) {
	rounds := 2
	if !testing.Short() {
		rounds = 40
	}
	for form := range columnar {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			place := makeTable(t, form)
			var files []string
			filepath.WalkDir(place, func(p string, e os.DirEntry, err error) error {
				if i, ierr := e.Info(); ierr == nil && !e.IsDir() && i.Size() > 0 {
					files = append(files, p)
				}
				return err
			})
			random := rand.New(rand.NewPCG(27, uint64(len(form))))
			for range rounds {
				p := files[random.IntN(len(files))]
				whole, err := os.ReadFile(p)
				if err != nil {
					t.Fatal(err)
				}
				hurt := bytes.Clone(whole)
				for range 1 + random.IntN(4) {
					hurt[random.IntN(len(hurt))] ^= byte(1 + random.IntN(255))
				}
				if random.IntN(4) == 0 {
					hurt = hurt[:random.IntN(len(hurt))]
				}
				if err := os.WriteFile(p, hurt, 0o644); err != nil {
					t.Fatal(err)
				}
				w, h := 1+random.IntN(120), 1+random.IntN(40)
				if random.IntN(2) == 0 {
					w, h = 80, 24
				}
				d := drive(t, place, place, w, h)
				visit(d)
				if d.Press(tcell.KeyCtrlC); !d.Left() {
					t.Fatal("Ctrl-C does not end it")
				}
				if err := os.WriteFile(p, whole, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// hostile is text that a terminal would obey: it sets the title, clears the screen, asks for an answer, hides text,
// turns the direction of writing.
const hostile = "a\x1b]0;owned\x07b\x1b[2Jc\x1b[6nd\u009b31me\x7ff\rg\u202eh\u200di\U000e0041j"

// TestHostileText: names of files and columns and values that have control characters are shown by escapes, in every
// view: no cell of the screen has a character without a shape.
func TestHostileText(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "in\x1b[2Jside")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	row := strings.NewReplacer("\x1b", `\u001b`, "\x07", `\u0007`, "\u009b", `\u009b`, "\x7f", `\u007f`, "\r", `\r`).
		Replace(hostile)
	in := filepath.Join(dir, "in.jsonl")
	if err := os.WriteFile(in, []byte(strings.Repeat(`{"`+row+`":"`+row+`","b":1}`+"\n", 50)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"parquet", "redfile", "trevni", "arrow"} {
		file := filepath.Join(dir, "x\x1b[6n"+strings.TrimSuffix(columnar[form], "/"))
		command(t, "convert", in, "-o", file, "--to", form)
		if form == "arrow" { // text in messages about damage
			if err := os.Truncate(file, sizeOf(t, file)-9); err != nil {
				t.Fatal(err)
			}
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 5 {
		t.Fatal(entries, err)
	}
	places := []string{dir}
	for _, e := range entries {
		places = append(places, filepath.Join(dir, e.Name()))
	}
	shown := false
	for _, place := range places {
		for _, s := range visit(drive(t, place, place, 120, 30)) {
			shown = shown || strings.Contains(s, `]0;owned`)
			for _, r := range s {
				if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
					t.Fatalf("%q: the screen has %U:\n%q", place, r, s)
				}
			}
		}
	}
	if !shown {
		t.Error("the text is on no screen: nothing was tried")
	}
}

func sizeOf(t *testing.T, name string) int64 {
	t.Helper()
	st, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}

// TestDamageIsShown: a damaged page is an X in the line of the file, is marked in the list of structures, its rows are
// marked, and Enter on the finding leads to it.
func TestDamageIsShown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	command(t, "demo", dir, "--damage")
	file := filepath.Join(dir, "damaged", "key.cfile") // SOURCES.txt there: a byte of the second block is changed
	d := drive(t, file, file, 80, 24)
	d.Press("g", "128", tcell.KeyEnter)
	if s := d.Screen(); !strings.Contains(s, "✗") || !strings.Contains(s, "damage") {
		t.Errorf("lost cells are not marked:\n%s", s)
	}
	d.Press("4")
	if s := d.Screen(); !strings.Contains(s, "cfile.block.checksum") || !strings.Contains(s, "128 to 255") {
		t.Errorf("findings:\n%s", s)
	}
	d.Press(tcell.KeyEnter)
	lines := d.Lines()
	marked := 0
	for _, l := range lines[2:] {
		if strings.Contains(l, "✗") {
			marked++
			if !strings.Contains(l, "block[1]") {
				t.Errorf("marked as damaged: %s", l)
			}
		}
	}
	if marked != 1 || !strings.Contains(lines[1], "X") {
		t.Errorf("the structure:\n%s", d.Screen())
	}
}
