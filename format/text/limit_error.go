package text

import (
	"errors"

	"stoa/fault"
)

// bytesOfMissing is the estimated memory of a value without a text: {}, three bytes with a comma, has as many of them
// as a struct has fields.
const bytesOfMissing = 8

// limitError is the error of a row that exceeds a limit.
type limitError string

const errMissingMembers limitError = "its missing members take more memory than a record may have, an eighth of " +
	"the page limit and of the memory limit"

func (e limitError) Error() string { return string(e) }

func (e limitError) of(in *input, off, size, line int64) error {
	return fault.Limitf(in.span(off, size), linePath(line, ""), "%s", string(e))
}

// asLimitError returns the limitError in err, if there is one.
func asLimitError(err error) (e limitError, ok bool) {
	ok = errors.As(err, &e)
	return e, ok
}
