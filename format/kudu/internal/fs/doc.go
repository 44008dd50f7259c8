// Package fs is a server's directories: which of them belong together, who has them open, which block manager they
// use, and in which file a block lies. A block of the log block manager is a section of a container; the container's
// metadata file is a journal of which blocks were created and deleted, and a block that was deleted may still be
// there (Carve).
package fs
