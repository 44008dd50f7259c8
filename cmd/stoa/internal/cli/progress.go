package cli

import (
	"context"
	"fmt"
	"iter"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"stoa/cmd/stoa/internal/display"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/mattn/go-runewidth"

	"stoa"
)

// tallies are updated wherever bytes are read.
type tallies struct{ Read atomic.Int64 }

// Progress is a line on standard error that shows how far a conversion has come: on a terminal, after one second.
type Progress struct {
	A     *App
	Rows  atomic.Int64
	All   int64 // rows; -1: not known
	Bytes int64 // of the sources; -1: not known
	// For work in pieces, in stored bytes: what is done, and the total. Total is 0 if there are no pieces.
	Done   atomic.Int64
	Total  int64
	before float64 // fraction of Total that was done before the start
	rows   int64   // written before the start
	read   int64   // bytes that were read before the start
	label  string
	began  time.Time
	end    chan struct{}
	wait   sync.WaitGroup
}

// Progress starts the progress line, if it is to be shown.
func (a *App) Progress(ctx context.Context, t *stoa.Table, rows int64, label string) *Progress {
	return a.progress(ctx, t, &Progress{All: rows, label: label})
}

// ProgressInPieces is Progress for work in pieces of total stored bytes, of which an earlier run has done some, with
// this many rows.
func (a *App) ProgressInPieces(ctx context.Context, t *stoa.Table, label string, done, total, rows int64) *Progress {
	p := &Progress{All: -1, label: label, Total: total, before: share(done, total), rows: rows}
	p.Done.Store(done)
	p.Rows.Store(rows)
	return a.progress(ctx, t, p)
}

func (a *App) progress(ctx context.Context, t *stoa.Table, p *Progress) *Progress {
	p.A, p.Bytes, p.read, p.began, p.end = a, -1, a.Tallies.Read.Load(), time.Now(), make(chan struct{})
	if !a.errTTY || a.Quiet || a.NoProgress {
		return p
	}
	a.line.count(1)
	p.Bytes = 0
	for _, s := range t.Sources() {
		n := a.Size(ctx, s.Name)
		if n < 0 {
			p.Bytes = -1
			break
		}
		p.Bytes += n
	}
	p.wait.Add(1)
	go p.show()
	return p
}

// Count counts the rows that pass through seq.
func (p *Progress) Count(seq Batches) Batches {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for b, err := range seq {
			if err == nil {
				p.Rows.Add(b.NumRows())
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

func (p *Progress) show() {
	defer p.wait.Done()
	wait := time.NewTimer(time.Second)
	defer wait.Stop()
	for {
		select {
		case <-p.end:
			p.A.line.draw(p.A.Stderr, "")
			p.A.line.count(-1)
			return
		case <-wait.C:
			width := 80
			if f, ok := p.A.Stderr.(*os.File); ok {
				_, width = terminal(f)
			}
			p.A.line.draw(p.A.Stderr, runewidth.Truncate(p.Line(time.Since(p.began)), width-1, "…"))
			wait.Reset(200 * time.Millisecond)
		}
	}
}

// Stop removes the line.
func (p *Progress) Stop() {
	close(p.end)
	p.wait.Wait()
}

// Line returns the line after the time d.
func (p *Progress) Line(d time.Duration) string {
	rows, read := p.Rows.Load(), p.A.Tallies.Read.Load()-p.read
	rate := float64(rows-p.rows) / d.Seconds()
	s := fmt.Sprintf("%s%s rows  %s rows/s  %s/s", p.label, display.Thousands(rows), short(rate),
		display.BytesText(int64(float64(read)/d.Seconds())))
	part := share(rows, p.All)
	if p.All < 0 {
		part = share(read, p.Bytes)
	}
	if p.Total > 0 {
		part = share(p.Done.Load(), p.Total)
	}
	if part <= p.before {
		return s
	}
	bar := [12]byte{}
	for i := range bar {
		bar[i] = '.'
		if float64(i) < part*float64(len(bar)) {
			bar[i] = '#'
		}
	}
	left := time.Duration(float64(d) * (1 - part) / (part - p.before)).Round(time.Second)
	return fmt.Sprintf("[%s] %3.0f%%  %s  ETA %d:%02d", bar[:], part*100, s, int(left.Minutes()),
		int(left.Seconds())%60)
}

// share returns part/all, from 0 to 1; 0 if that is not known.
func share(part, all int64) float64 {
	if all <= 0 {
		return 0
	}
	return min(1, float64(part)/float64(all))
}

// short formats a rate.
func short(f float64) string {
	for _, u := range []string{"", "k", "M", "G"} {
		if f < 999.5 {
			return fmt.Sprintf("%.3g%s", f, u)
		}
		f /= 1000
	}
	return fmt.Sprintf("%.3gT", f)
}

// Batches is the result of a scan.
type Batches = iter.Seq2[arrow.RecordBatch, error]
