//go:build !unix

package status

import (
	"errors"
	"os"
)

// tryLock is unsupported: tables are changed on Unix only.
func tryLock(*os.File) error { return errors.ErrUnsupported }
