//go:build assert

package main

// maxKept is 0 in tests, so that the sanitizer notices every use of released memory at once.
const maxKept = 0
