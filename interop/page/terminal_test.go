package page

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// terminal is a real terminal of 80 × 24 characters, of tmux, with a shell in it.
type terminal struct{ socket, home string }

// newTerminal starts a terminal in a directory. A test without tmux is skipped.
func newTerminal(t *testing.T, dir string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("SKIPPED, nothing was tried: stoa browse needs a terminal to be driven in: apt-get install tmux")
	}
	m := &terminal{filepath.Join(t.TempDir(), "tmux"), t.TempDir()}
	if _, err := m.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", dir, "env", "PS1=ready> ",
		"sh", "-i"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.tmux("kill-server") })
	m.until(t, "ready>")
	return m
}

func (m *terminal) tmux(args ...string) (string, error) {
	cmd := exec.Command("tmux", append([]string{"-S", m.socket}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+m.home, "LC_ALL=C.UTF-8", "TERM=xterm-256color", "TMUX=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tmux %v: %v: %s", args, err, out)
	}
	return string(out), nil
}

// press presses keys, by the names of tmux.
func (m *terminal) press(t *testing.T, keys ...string) {
	t.Helper()
	if _, err := m.tmux(append([]string{"send-keys", "--"}, keys...)...); err != nil {
		t.Fatal(err)
	}
}

// types types text.
func (m *terminal) types(t *testing.T, text string) {
	t.Helper()
	if _, err := m.tmux("send-keys", "-l", "--", text); err != nil {
		t.Fatal(err)
	}
}

// until waits until the screen has each of the texts, and returns it.
func (m *terminal) until(t *testing.T, texts ...string) string {
	t.Helper()
	var screen string
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		out, err := m.tmux("capture-pane", "-p")
		if err != nil {
			t.Fatal(err)
		}
		screen = out
		all := true
		for _, text := range texts {
			all = all && strings.Contains(screen, text)
		}
		if all {
			return screen
		}
		if time.Now().After(end) {
			t.Fatalf("the screen has not all of %q:\n%s", texts, screen)
		}
	}
}

// state is what a program may leave changed: the other screen, the cursor, the mouse, and the settings of the line.
func (m *terminal) state(t *testing.T) string {
	t.Helper()
	flags, err := m.tmux("display-message", "-p",
		"#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{keypad_flag} #{pane_tty}")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(flags)
	tty := fields[len(fields)-1]
	out, err := exec.Command("stty", "-F", tty, "-a").CombinedOutput()
	if err != nil {
		t.Fatalf("stty: %v %s", err, out)
	}
	return flags + string(out)
}

// TestBrowseInATerminal drives stoa browse by keys alone in a terminal of 80 × 24: its rows are those that were
// written, the views fit, and when it ends, the terminal is as it was before.
func TestBrowseInATerminal(t *testing.T) {
	s := newFiles(t)
	m := newTerminal(t, s.work)
	var rows []string // as the file of the test has them
	for _, line := range strings.Split(strings.TrimSpace(string(sales())), "\n")[1:] {
		cells := strings.Split(line, ",")
		for i := range cells {
			cells[i] = cmp.Or(cells[i], "null")
		}
		rows = append(rows, strings.Join(cells, " "))
	}
	has := func(screen string, k int) {
		t.Helper()
		for _, l := range strings.Split(screen, "\n") {
			if f := strings.Fields(l); len(f) > 1 && f[0] == fmt.Sprint(k) {
				if got := strings.Join(f[1:], " "); got != rows[k] {
					t.Errorf("row %d is %q, want %q", k, got, rows[k])
				}
				return
			}
		}
		t.Errorf("row %d is not on the screen:\n%s", k, screen)
	}
	before := m.state(t)
	m.types(t, s.stoa+" browse data/sales.parquet; echo ended $?\n")
	m.until(t, "price", "2024-01-01")
	m.press(t, "1")
	has(m.until(t, "2024-01-01"), 3)
	m.press(t, "End")
	has(m.until(t, "19999"), 19_999)
	m.types(t, "g12345")
	m.press(t, "Enter")
	has(m.until(t, "12345 "), 12_345)
	m.types(t, "/price >> 900")
	m.press(t, "Enter")
	m.until(t, "^", "price >> 900")
	m.press(t, "End", "C-u")
	m.types(t, "price > 976 and name = 'anna'")
	m.press(t, "Enter")
	m.until(t, "anna", "4 findings")
	for _, v := range []struct {
		keys []string
		says []string
	}{{[]string{"2"}, []string{"price", "amount"}}, {[]string{"3"}, []string{"footer"}}, {[]string{"4"}, nil},
		{[]string{"?"}, []string{"Esc"}}} {
		m.press(t, v.keys...)
		screen := m.until(t, v.says...)
		for _, l := range strings.Split(screen, "\n") {
			if utf8.RuneCountInString(l) > 80 {
				t.Errorf("after %v a line is wider than the terminal: %q", v.keys, l)
			}
		}
	}
	m.press(t, "C-c")
	m.until(t, "ended 0")
	if after := m.state(t); after != before {
		t.Errorf("the terminal is not as before:\n%s\nand before:\n%s", after, before)
	}
}

// TestBrowseEnds: damage is on the screen of a terminal of 80 × 24; a signal ends the program, and restores the
// terminal.
func TestBrowseEnds(t *testing.T) {
	s := newFiles(t)
	m := newTerminal(t, s.work)
	before := m.state(t)
	for _, signal := range []string{"TERM", "INT"} {
		m.types(t, "clear; sh -c 'echo $$ >pid; exec "+s.stoa+" browse data/damaged/key.cfile'; echo by signal\n")
		m.until(t, "4 findings")
		m.types(t, "1g128")
		m.press(t, "Enter")
		m.until(t, "✗", "damage")
		m.press(t, "4")
		m.until(t, "cfile.block.checksum", "128 to 255")
		run(t, s.work, "sh", "-c", "kill -"+signal+" $(cat pid)")
		m.until(t, "by signal")
		if after := m.state(t); after != before {
			t.Errorf("after %s the terminal is not as before:\n%s\nand before:\n%s", signal, after, before)
		}
	}
}
