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

// watched calls do with a context that is cancelled if there is no progress for Idle.
func (a *requester) watched(ctx context.Context,
	do func(ctx context.Context, alive func(io.Reader) io.Reader) error) error {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(a.Idle, func() { cancel(errStalled) })
	defer timer.Stop()
	err := do(inner, func(r io.Reader) io.Reader { return &idleReader{Reader: r, timer: timer, after: a.Idle} })
	if err != nil && ctx.Err() == nil && context.Cause(inner) == errStalled {
		return &Error{Again: true, Reason: fmt.Sprintf("timeout: less than %d KiB of the answer arrived in %s",
			leastProgress>>10, a.Idle)}
	}
	return err
}
