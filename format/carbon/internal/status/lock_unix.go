//go:build unix

package status

import (
	"os"
	"syscall"
)

// OneDevice reports whether two files, or directories, are in one file system; true if that is not known.
func OneDevice(a, b string) bool {
	var of [2]syscall.Stat_t
	return syscall.Stat(a, &of[0]) != nil || syscall.Stat(b, &of[1]) != nil || of[0].Dev == of[1].Dev
}

// tryLock locks a file as Java's FileChannel.tryLock does: CarbonData's own programs see the lock, and it is released
// when the process ends.
func tryLock(f *os.File) error {
	return syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK})
}
