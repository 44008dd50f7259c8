//go:build unix

package store

import "syscall"

// nonblock keeps the opening of a pipe from waiting for its other end. Reading regular files goes on as without it.
const nonblock = syscall.O_NONBLOCK
