//go:build !linux || !(amd64 || arm64)

package store

import "errors"

// exchange would swap two names atomically, which is not supported here.
func exchange(string, string) error { return errors.ErrUnsupported }
