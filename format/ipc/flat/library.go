package flat

import (
	"errors"
	"fmt"
	"strings"
)

// errOutside is what the library's run-time errors mean, in what CheckSchema does not look at.
var errOutside = errors.New("an offset or a length in it leads out of it")

// Reason is an error of Arrow's library, or what it panicked with, for people. A run-time error mentions the
// library's slices; it means that the message is not what it should be.
func Reason(p any) error {
	if strings.Contains(fmt.Sprint(p), "runtime error") {
		return errOutside
	}
	if err, ok := p.(error); ok {
		return err
	}
	return fmt.Errorf("%v", p)
}
