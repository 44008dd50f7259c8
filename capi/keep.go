//go:build !assert

package main

// maxKept is the maximum number of bytes that the pool keeps for the next batches.
const maxKept = 256 << 20
