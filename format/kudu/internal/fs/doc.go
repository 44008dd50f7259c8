// Package fs finds and opens a server's directories: which of them belong together, whether a server is running on
// them, which block manager they use, and which file holds a block. A block of the log block manager is a section of a
// container; the container's metadata file is a journal of which blocks were created and deleted, and the bytes of a
// deleted block may still be there (Carve).
package fs
