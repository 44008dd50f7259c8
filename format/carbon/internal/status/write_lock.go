package status

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"stoa/fault"
)

// Locks of a table, as files in its LockFiles directory.
const (
	LockStatus     = "tablestatus.lock"
	LockSchema     = "meta.lock"
	LockCompaction = "compaction.lock"
	LockUpdate     = "update.lock"
)

// LockWait is how long a lock is waited for.
const LockWait = 30 * time.Second

// heldHere are the locks of this process: the system's do not keep a process from itself.
var heldHere = struct {
	sync.Mutex
	names map[string]bool
}{names: map[string]bool{}}

// Lock takes a lock of the table in dir, waiting for at most wait; unlock gives it back.
func Lock(ctx context.Context, dir, name string, wait time.Duration) (unlock func(), err error) {
	full, err := filepath.Abs(filepath.Join(dir, "LockFiles", name))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
		return nil, err
	}
	for end := time.Now().Add(wait); ; {
		if unlock, err = lockOnce(full); err == nil || errors.Is(err, errors.ErrUnsupported) {
			return unlock, err
		}
		if time.Now().After(end) {
			return nil, fault.Invalidf("%s: another process holds the lock %s: %v", dir, name, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func lockOnce(full string) (unlock func(), err error) {
	heldHere.Lock()
	defer heldHere.Unlock()
	if heldHere.names[full] {
		return nil, errors.New("it is this one")
	}
	f, err := os.OpenFile(full, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err != nil {
		f.Close()
		return nil, err
	}
	heldHere.names[full] = true
	return func() {
		heldHere.Lock()
		defer heldHere.Unlock()
		delete(heldHere.names, full)
		f.Close() // gives the lock back
	}, nil
}
