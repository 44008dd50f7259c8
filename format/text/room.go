package text

import (
	"errors"

	"stoa/fault"
)

// bytesOfMissing is what a value takes in memory for which there is no text: three bytes, {}, can stand for as
// many as a struct has fields.
const bytesOfMissing = 8

// roomError says that a row needs more than it may.
type roomError string

const errRoom roomError = "the members that are missing in it take more memory than a record may have, an " +
	"eighth of the page limit and of the memory limit"

func (e roomError) Error() string { return string(e) }

func (e roomError) of(in *input, off, size, line int64) error {
	return fault.Limitf(in.span(off, size), linePath(line, ""), "%s", string(e))
}

// asRoom is err if it says that a row needs more than it may.
func asRoom(err error) (e roomError, ok bool) {
	ok = errors.As(err, &e)
	return e, ok
}
