package session

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// history is the lines typed, including those of former dialogues.
type history struct {
	lines []string // the newest last
	file  string   // "": not kept
}

// maxHistory is the maximum number of lines kept.
const maxHistory = 1000

func openHistory() *history {
	h := &history{}
	dir, err := os.UserCacheDir()
	if err != nil {
		return h
	}
	h.file = filepath.Join(dir, "stoa", "sql-history")
	f, err := os.Open(h.file)
	if err != nil {
		return h
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		h.Add(s.Text())
	}
	return h
}

// Add adds a line, unless it equals the last one.
func (h *history) Add(line string) {
	if strings.TrimSpace(line) == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	if len(h.lines) > maxHistory {
		h.lines = h.lines[1:]
	}
}

// Len is the number of lines.
func (h *history) Len() int { return len(h.lines) }

// At returns a line, the newest first.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }

// close keeps the lines for the next dialogue. An error is ignored: it is no reason to fail.
func (h *history) close() {
	if h.file == "" || len(h.lines) == 0 {
		return
	}
	if os.MkdirAll(filepath.Dir(h.file), 0o700) == nil {
		_ = os.WriteFile(h.file, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600)
	}
}
