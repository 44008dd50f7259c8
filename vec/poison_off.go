//go:build !poison

package vec

// leastRecycled is the size from which buffers are kept for reuse.
const leastRecycled = freshLarge

func poison([]byte) {}
