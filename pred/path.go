package pred

import "stoa/pred/internal/syntax"

// JoinPath joins the names of a column's fields, outermost first, with points to a path. A name that is empty or
// contains a point or a quotation mark is quoted, with quotation marks in it doubled.
func JoinPath(names ...string) string { return syntax.JoinPath(names...) }

// SplitPath is the inverse of JoinPath. Every text is a valid path: an unclosed quotation mark is closed by the end.
func SplitPath(path string) []string { return syntax.SplitPath(path) }
