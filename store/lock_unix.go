//go:build unix && !solaris && !aix

package store

import (
	"os"
	"syscall"
)

// tryLock locks a file or directory for this open file alone, and reports whether that worked.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
