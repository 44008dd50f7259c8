//go:build unix

package status

import (
	"os"
	"syscall"
)

// tryLock locks a file as Java's FileChannel.tryLock does: CarbonData's own programs see the lock, and it is released
// when the process ends.
func tryLock(f *os.File) error {
	return syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK})
}
