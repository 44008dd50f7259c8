// Package container is an open file: its header, the descriptors of its columns, and blocks, compared with their
// checksums and decompressed. It knows nothing of what is in a block.
package container
