package meta

import "stoa/vec"

// Alloc allocates n bytes plus the slack that vectors need.
func Alloc(n int) []byte { return make([]byte, n, n+vec.Slack) }
