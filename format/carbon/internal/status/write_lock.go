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

// LockWait is how long Lock waits for a lock that is held.
const LockWait = 30 * time.Second

// held are the locks that this process holds: POSIX locks do not exclude other goroutines of the same process.
var held = struct {
	sync.Mutex
	names map[string]bool
}{names: map[string]bool{}}

// Lock takes the lock name of the table in dir, waiting at most wait; unlock releases it. The error is Invalid if the
// lock stays held, and errors.ErrUnsupported if the system has no such locks.
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
			return nil, fault.Invalidf("%s: lock %s is held by another process: %v", dir, name, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Free reports whether the lock name of the table in dir is currently free. Unlike Lock it creates no lock file.
func Free(dir, name string) bool {
	full, err := filepath.Abs(filepath.Join(dir, "LockFiles", name))
	if err != nil {
		return false
	}
	if _, err := os.Stat(full); errors.Is(err, os.ErrNotExist) {
		return true
	}
	unlock, err := lockOnce(full)
	if err == nil {
		unlock()
	}
	return err == nil
}

func lockOnce(full string) (unlock func(), err error) {
	held.Lock()
	defer held.Unlock()
	if held.names[full] {
		return nil, errors.New("this process holds it")
	}
	f, err := os.OpenFile(full, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err != nil {
		f.Close()
		return nil, err
	}
	held.names[full] = true
	return func() {
		held.Lock()
		defer held.Unlock()
		delete(held.names, full)
		f.Close() // releases the lock
	}, nil
}
