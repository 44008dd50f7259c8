package format

import "context"

// Reach is how far a part of a table was read. The moments are those of the table's system, and grow.
type Reach struct {
	Changed uint64 `json:"changed"`        // the last change that was read
	Known   uint64 `json:"known"`          // up to here every change was read
	Time    string `json:"time,omitempty"` // Known in RFC 3339
	Rows    int64  `json:"rows,omitempty"` // physical rows, with lost and deleted ones; 0: not known
}

// Reached returns how far the parts of a table were read, by Part.Ref. Those of which it is not known are left out.
type Reached func(ctx context.Context) (map[string]Reach, error)

// Reacher is an optional interface of a Reader that knows how far the parts of its table were read: a later read of
// the same table that does not reach the last change of an earlier one has older rows.
type Reacher interface {
	Reached(ctx context.Context) (map[string]Reach, error)
}

// ReachOf returns Reached of a reader; nil if it does not know.
func ReachOf(r Reader) Reached {
	if k, ok := r.(Reacher); ok {
		return k.Reached
	}
	return nil
}
