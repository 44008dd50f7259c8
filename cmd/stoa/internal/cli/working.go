package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mattn/go-runewidth"

	"stoa/cmd/stoa/internal/display"
)

// statusLine is the last line on standard error, if that is a terminal: it shows how far a verb is. Whatever else is
// written there, or to the terminal of standard output, removes it first.
type statusLine struct {
	mu       sync.Mutex
	shown    bool
	progress int           // lines of Progress that are in force; they say more than how much was read
	end      chan struct{} // closed when how much was read is not shown any more; nil: it is not
}

// draw shows a text in place of the one before; "" removes it.
func (l *statusLine) draw(w io.Writer, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(w, text)
}

func (l *statusLine) put(w io.Writer, text string) {
	if text != "" || l.shown {
		fmt.Fprint(w, "\r\x1b[K"+text)
	}
	l.shown = text != ""
}

// print prints whole lines.
func (l *statusLine) print(w io.Writer, lines string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(w, "")
	fmt.Fprintln(w, lines)
}

// count adds to the number of lines of Progress.
func (l *statusLine) count(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress += n
}

// begin shows, from the second second on, how long it has taken and how much was read, until finish.
func (l *statusLine) begin(w io.Writer, width int, read func() int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = make(chan struct{})
	go l.work(w, width, read, l.end)
}

func (l *statusLine) work(w io.Writer, width int, read func() int64, end <-chan struct{}) {
	began := time.Now()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-end:
			return
		case <-tick.C:
			if d := time.Since(began); d >= time.Second {
				l.drawWork(w, runewidth.Truncate(workLine(d, read()), width-1, "…"))
			}
		}
	}
}

func (l *statusLine) drawWork(w io.Writer, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end != nil && l.progress == 0 {
		l.put(w, text)
	}
}

func workLine(d time.Duration, read int64) string {
	s := fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
	if read == 0 {
		return s
	}
	rate := int64(float64(read) / d.Seconds())
	return fmt.Sprintf("%s  %s read  %s/s", s, display.BytesText(read), display.BytesText(rate))
}

// finish ends what begin began, and removes the line.
func (l *statusLine) finish(w io.Writer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == nil {
		return
	}
	close(l.end)
	l.end = nil
	l.put(w, "")
}

// spoken is standard output: before something is written, the line may have to go.
type spoken struct {
	w      io.Writer
	before func()
}

func (s spoken) Write(b []byte) (int, error) {
	s.before()
	return s.w.Write(b)
}
