package fs

import (
	"fmt"

	"stoa/fault"
	"stoa/store"
)

// Unused returns an Invalid error if a server is running on the directories.
func (f *FS) Unused() error {
	if len(f.Users) == 0 {
		return nil
	}
	u := f.Users[0]
	who := "a server"
	if u.PID > 0 {
		who = fmt.Sprintf("a server (process %d)", u.PID)
	}
	return fault.New(fault.Invalid, fault.Span{Object: u.Object}, "",
		"%s runs on this directory; stop it, copy the directory, or set live=true", who)
}

// User is a server running on a directory.
type User struct {
	Object string
	PID    int // 0: not known
}

// FindUsers adds the servers that hold the lock of a data directory to f.Users.
func (f *FS) FindUsers() {
	locked := f.Options.Locked
	if locked == nil {
		if !store.IsLocal(f.Tree) {
			return
		}
		locked = LockHolder
	}
	for _, d := range f.DataDirs {
		if d.Instance == "" {
			continue
		}
		if pid, held, err := locked(store.Below(f.Tree, d.Instance)); err == nil && held {
			f.Users = append(f.Users, User{d.Instance, pid})
		}
	}
}
