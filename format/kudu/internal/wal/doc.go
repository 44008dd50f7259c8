// Package wal is a tablet's write-ahead log: its segments and batches, the operations in them, and what a replay
// gives that was not flushed.
package wal
