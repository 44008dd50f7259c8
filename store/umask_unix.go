//go:build unix

package store

import (
	"io/fs"
	"sync"
	"syscall"
)

// umask can only be read by setting it, so that is done once, when it is first needed.
var umask = sync.OnceValue(func() fs.FileMode {
	m := syscall.Umask(0o077) // files created in between are not accessible to others
	syscall.Umask(m)
	return fs.FileMode(m)
})
