//go:build !unix

package status

import (
	"errors"
	"os"
)

// tryLock is not there: tables are changed on Unix only.
func tryLock(*os.File) error { return errors.ErrUnsupported }
