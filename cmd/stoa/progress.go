package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/mattn/go-runewidth"

	"stoa"
)

// tallies are counted wherever bytes are read.
type tallies struct{ read atomic.Int64 }

// progress is a line on standard error that tells how far a conversion has come: on a terminal, after one second.
type progress struct {
	a     *app
	rows  atomic.Int64
	all   int64 // rows; -1 not known
	bytes int64 // of the sources; -1 not known
	read  int64 // bytes that were read before
	label string
	began time.Time
	end   chan struct{}
	wait  sync.WaitGroup
}

// progress begins to show, if it is to be shown.
func (a *app) progress(ctx context.Context, t *stoa.Table, rows int64, label string) *progress {
	p := &progress{a: a, all: rows, bytes: -1, read: a.tallies.read.Load(), label: label, began: time.Now(),
		end: make(chan struct{})}
	if !a.errTTY || a.quiet || a.noProgress {
		return p
	}
	p.bytes = 0
	for _, s := range t.Sources() {
		n := a.size(ctx, s.Name)
		if n < 0 {
			p.bytes = -1
			break
		}
		p.bytes += n
	}
	p.wait.Add(1)
	go p.show()
	return p
}

// count counts the rows that pass.
func (p *progress) count(seq batches) batches {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for b, err := range seq {
			if err == nil {
				p.rows.Add(b.NumRows())
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

func (p *progress) show() {
	defer p.wait.Done()
	wait := time.NewTimer(time.Second)
	defer wait.Stop()
	for shown := false; ; shown = true {
		select {
		case <-p.end:
			if shown {
				fmt.Fprint(p.a.stderr, "\r\x1b[K")
			}
			return
		case <-wait.C:
			width := 80
			if f, ok := p.a.stderr.(*os.File); ok {
				_, width = terminal(f)
			}
			fmt.Fprint(p.a.stderr, "\r\x1b[K"+runewidth.Truncate(p.line(time.Since(p.began)), width-1, "…"))
			wait.Reset(200 * time.Millisecond)
		}
	}
}

// stop takes the line away.
func (p *progress) stop() {
	close(p.end)
	p.wait.Wait()
}

// line is what is shown after the time d.
func (p *progress) line(d time.Duration) string {
	rows, read := p.rows.Load(), p.a.tallies.read.Load()-p.read
	s := fmt.Sprintf("%s%s rows  %s rows/s  %s/s", p.label, thousands(rows), short(float64(rows)/d.Seconds()),
		bytesText(int64(float64(read)/d.Seconds())))
	part := share(rows, p.all)
	if p.all < 0 {
		part = share(read, p.bytes)
	}
	if part <= 0 {
		return s
	}
	bar := [12]byte{}
	for i := range bar {
		bar[i] = '.'
		if float64(i) < part*float64(len(bar)) {
			bar[i] = '#'
		}
	}
	left := time.Duration(float64(d) * (1 - part) / part).Round(time.Second)
	return fmt.Sprintf("[%s] %3.0f%%  %s  ETA %d:%02d", bar[:], part*100, s, int(left.Minutes()),
		int(left.Seconds())%60)
}

// share is part/all, from 0 to 1; 0 if that is not known.
func share(part, all int64) float64 {
	if all <= 0 {
		return 0
	}
	return min(1, float64(part)/float64(all))
}

// short writes a rate.
func short(f float64) string {
	for _, u := range []string{"", "k", "M", "G"} {
		if f < 999.5 {
			return fmt.Sprintf("%.3g%s", f, u)
		}
		f /= 1000
	}
	return fmt.Sprintf("%.3gT", f)
}
