package redfile_test

import (
	"errors"

	"stoa/fault"
)

func asFault(err error, e **fault.Error) bool { return errors.As(err, e) }
