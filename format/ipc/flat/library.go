package flat

import (
	"errors"
	"fmt"
	"strings"
)

// errOutside replaces run-time errors of the library, in parts that CheckSchema does not check.
var errOutside = errors.New("an offset or a length in it leads out of it")

// Reason converts an error of Arrow's library, or the value of its panic, to a readable error. A run-time error, which
// would name the library's slices, becomes an error about the message.
func Reason(p any) error {
	if strings.Contains(fmt.Sprint(p), "runtime error") {
		return errOutside
	}
	if err, ok := p.(error); ok {
		return err
	}
	return fmt.Errorf("%v", p)
}
