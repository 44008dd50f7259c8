//go:build unix

package store

import (
	"io/fs"
	"sync"
	"syscall"
)

// umask can only be asked for by setting it, so that is done once, as early as somebody needs it.
var umask = sync.OnceValue(func() fs.FileMode {
	m := syscall.Umask(0o077) // nothing that is made in between is open to others
	syscall.Umask(m)
	return fs.FileMode(m)
})
