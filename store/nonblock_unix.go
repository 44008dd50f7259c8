//go:build unix

package store

import "syscall"

// nonblock prevents the opening of a pipe from waiting for its other end. It does not affect reads of regular files.
const nonblock = syscall.O_NONBLOCK
