// Package plain contains the kernels for values that are stored unencoded: bits, fixed-width values, strings located by
// offsets.
//
// A block that stores only the values that are present is decoded to the front of its buffer and then spread
// over the rows by the bitmap of presence (ExpandFixed, ExpandOffsets); dictionary codes are turned into
// strings by GatherStrings. The caller owns all memory, and sizes it beforehand (SizeStrings). Values are
// little-endian in the files and in memory.
package plain
