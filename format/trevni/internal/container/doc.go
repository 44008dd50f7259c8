// Package container is an open Trevni file: its header, the descriptors of its columns, and blocks, compared with
// their checksums and decompressed. It knows nothing of what is in a block. Descriptors have no checksum of the
// format's own; our writer keeps one in metadata, which other readers skip.
package container
