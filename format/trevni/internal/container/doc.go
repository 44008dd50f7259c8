// Package container opens Trevni files: it reads the header, the descriptors of the columns, and blocks, which it
// checks and decompresses. It knows nothing about the contents of blocks. The format has no checksum for descriptors;
// our writer keeps one in metadata, which other readers ignore.
package container
