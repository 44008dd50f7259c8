//go:build unix && !solaris && !aix

package store

import (
	"os"
	"syscall"
)

// tryLock locks a file or directory exclusively for this open file, and reports whether it succeeded.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
