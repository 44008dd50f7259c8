//go:build !unix

package status

import (
	"errors"
	"os"
)

// OneDevice is true: tables can be changed on Unix only.
func OneDevice(string, string) bool { return true }

// tryLock returns errors.ErrUnsupported: tables can be changed on Unix only.
func tryLock(*os.File) error { return errors.ErrUnsupported }
