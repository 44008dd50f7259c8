//go:build !unix

package status

import (
	"errors"
	"os"
)

// tryLock returns errors.ErrUnsupported: tables can be changed on Unix only.
func tryLock(*os.File) error { return errors.ErrUnsupported }
