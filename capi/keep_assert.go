//go:build assert

package main

// maxKept is none in tests: the sanitizer sees at once who uses memory that was given back.
const maxKept = 0
