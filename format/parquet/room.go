package parquet

import "stoa/vec"

// room gives memory of its own.
func room(n int) []byte { return make([]byte, n, n+vec.Slack) }
