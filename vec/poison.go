//go:build poison

package vec

// leastRecycled is the size from which buffers are kept for reuse: tests have small ones.
const leastRecycled = 64

// poison overwrites a released buffer, so that tests with this build tag notice whoever still reads it.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xa5
	}
}
