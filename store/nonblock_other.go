//go:build !unix

package store

const nonblock = 0
