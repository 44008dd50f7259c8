package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// leastProgress is how many bytes of an answer are progress, unless they are its last: a server that sends a byte now
// and then would never be given up.
const leastProgress = 16 << 10

// idleReader restarts the timer of a request whenever enough data have arrived.
type idleReader struct {
	io.Reader
	timer *time.Timer
	after time.Duration
	n     int // bytes since the timer was restarted
}

func (i *idleReader) Read(p []byte) (int, error) {
	n, err := i.Reader.Read(p)
	if i.n += n; i.n >= leastProgress {
		i.timer.Reset(i.after)
		i.n = 0
	}
	return n, err
}

// errStalled marks a context that was cancelled because an answer made no progress.
var errStalled = errors.New("stalled")

// watched calls do with a context that is cancelled if there is no progress for a time.
func watched(ctx context.Context, idle time.Duration,
	do func(ctx context.Context, alive func(io.Reader) io.Reader) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(idle, func() { cancel(errStalled) })
	defer timer.Stop()
	err := do(inner, func(r io.Reader) io.Reader { return &idleReader{Reader: r, timer: timer, after: idle} })
	if err != nil && ctx.Err() == nil && context.Cause(inner) == errStalled {
		return &Error{Again: true, Reason: fmt.Sprintf("timeout: less than %d KiB of the answer arrived in %s",
			leastProgress>>10, idle)}
	}
	return err
}

// afterFailure is how long requests are spared after one has failed for good: readers make many, and should not wait
// for each of them to fail in turn.
const afterFailure = 10 * time.Second

// streak is how requests of a kind have failed since one was answered.
type streak struct {
	n    int       // those that failed for good
	last time.Time // when the last of them did
	err  error     // and why
}

// recent reports whether a request has failed for good a short time ago.
func (s streak) recent() bool { return time.Since(s.last) < afterFailure }

// givenUp returns why the last request failed if several have in a row: no other is made then.
func (s streak) givenUp() error {
	const inRow = 3
	if s.n >= inRow && s.recent() {
		return s.err
	}
	return nil
}

// ended returns the streak after a request that was finally answered, or failed.
func (s streak) ended(err error) streak {
	if err == nil {
		return streak{}
	}
	return streak{s.n + 1, time.Now(), err}
}
