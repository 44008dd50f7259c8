package format

// Copied is an optional interface of a Reader of a format whose places may hold copies of the same rows: see Together.
type Copied interface {
	// Copies returns the ids of the parts that are read. Parts with the same id hold the same rows, wherever they are.
	Copies() []string
}

// Shared is an optional interface of a Reader whose system may be writing while stoa reads.
type Shared interface {
	// Shared reports whether it is known to be writing: files may then grow, but what was read does not change.
	Shared() bool
}
