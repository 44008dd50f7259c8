package session

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"stoa/sql/tables"
)

// watch shows on a terminal, after a second, how many rows have been read until the first row of the result; stop ends
// that.
func (s *Session) watch() (stop func()) {
	f, ok := s.app.Stderr.(*os.File)
	if !ok || s.app.Quiet || s.app.NoProgress || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	end := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		wait := time.NewTimer(time.Second)
		defer wait.Stop()
		for shown := false; ; shown = true {
			select {
			case <-end:
				if shown {
					fmt.Fprint(f, "\r\x1b[K")
				}
				return
			case <-wait.C:
				fmt.Fprint(f, "\r\x1b[K"+s.line())
				wait.Reset(200 * time.Millisecond)
			}
		}
	})
	return sync.OnceFunc(func() { close(end); ended.Wait() })
}

// line returns the text shown: the rows from scans, and a bar if the total is known.
func (s *Session) line() string {
	var read, all int64
	known := true
	seen := map[*tables.Source]bool{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ref := range s.references {
		if ref.planned == 0 {
			continue
		}
		if !seen[ref.source] { // it counts for all uses of a table
			seen[ref.source] = true
			read += ref.source.Read.Load()
		}
		all += ref.source.Stored * int64(ref.planned)
		known = known && ref.source.Stored >= 0 && ref.where == nil
	}
	if !known || all == 0 {
		return fmt.Sprintf("%d rows read", read)
	}
	part := min(1, float64(read)/float64(all))
	bar := []byte("............")
	for i := range bar {
		if float64(i) < part*float64(len(bar)) {
			bar[i] = '#'
		}
	}
	return fmt.Sprintf("[%s] %3.0f%%  %d of %d rows read", bar, 100*part, read, all)
}
