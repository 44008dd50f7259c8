package meta

import "stoa/vec"

// Room gives memory of its own.
func Room(n int) []byte { return make([]byte, n, n+vec.Slack) }
