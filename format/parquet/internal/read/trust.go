package read

import "strings"

// CountsNulls reports whether the null counts and null pages that the writer states for a column can be relied on.
// Arrow C++ (seen in versions 15 to 26) and Arrow Go (18) count, for a dictionary-encoded Arrow array below a struct,
// only the nulls of the array, and not those of the structs above it. The file does not always say that the array was
// dictionary-encoded, so no leaf below a group is trusted.
func (r *Reader) CountsNulls(column int) bool {
	d := r.Footer.Schema.Column(column)
	return len(d.Steps) == 1 || d.MaxDefinitionLevel() == 0 ||
		!r.by("parquet-cpp") && !r.by("parquet-go version")
}

// ExactBounds reports whether bounds that the writer marks as exact are values of the column. Arrow C++ takes them from
// the whole dictionary of an array, of which rows need not refer to every value.
func (r *Reader) ExactBounds() bool { return !r.by("parquet-cpp") }

// by reports whether the footer names a program that begins so.
func (r *Reader) by(program string) bool { return strings.HasPrefix(r.Footer.CreatedBy, program) }
