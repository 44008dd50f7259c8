// Package wal reads a tablet's write-ahead log: its segments and batches, the operations in them, and, by Replay, the
// rows and changes that were not flushed. The REPLICATE entry of an operation has its rows, the COMMIT entry says
// which memory stores they went to; an operation without a COMMIT did not happen as far as this replica knows. Segments
// are preallocated: zeros after the last batch are unused space, not damage.
package wal
