//go:build !assert

package main

// maxKept is how many bytes the pool keeps for the next batches at most.
const maxKept = 256 << 20
