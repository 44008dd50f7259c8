package fs

import (
	"os"
	"path/filepath"
	"syscall"
)

// LockHolder reports whether a process holds Kudu's lock on a file of this machine. A server locks the file
// block_manager_instance of each of its data directories for writing, with fcntl, for as long as it runs. pid is 0 if
// it cannot be determined (a process of another container or machine). Only regular files are opened, because opening a
// pipe waits for its other end.
func LockHolder(name string) (pid int, held bool, err error) {
	name = filepath.FromSlash(name)
	if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
		return 0, false, err
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a pipe in the meantime
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil {
		return 0, false, err
	}
	if lock.Type == syscall.F_UNLCK {
		return 0, false, nil
	}
	return max(int(lock.Pid), 0), true, nil
}
