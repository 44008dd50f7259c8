package remote

import (
	"net/http"

	"stoa/store"
)

// sameObject returns an error if an answer has a different stamp or size from the object that was requested. A server
// may leave out the ETag in some answers: the times of the last change are then compared, if both have one.
func sameObject(want, got Object) error {
	const later = "another time of its last change"
	switch times := isTime(want.Stamp); {
	case want.Size >= 0 && got.Size >= 0 && want.Size != got.Size:
		return changedIn("another size")
	case want.Stamp == "" || got.Stamp == "":
		return nil
	case times != isTime(got.Stamp):
		if !want.Changed.IsZero() && !got.Changed.IsZero() && want.Changed.Unix() != got.Changed.Unix() {
			return changedIn(later + ", in an answer without its ETag")
		}
		return nil
	case want.Stamp != got.Stamp && times:
		return changedIn(later + ", and it has no ETag")
	case want.Stamp != got.Stamp:
		return changedIn("another ETag")
	}
	return nil
}

func changedIn(what string) error { return &Error{Kind: store.ErrChanged, Reason: what} }

// isTime reports whether a stamp is the time of the last change, which a store has instead of an ETag.
func isTime(stamp string) bool {
	_, err := http.ParseTime(stamp)
	return err == nil
}

// gone returns the error of a read of an object that was there: one that is missing now was removed meanwhile, which is
// no damage.
func gone(err error) error {
	if isMissing(err) {
		return changedIn("it is no longer there")
	}
	return err
}
