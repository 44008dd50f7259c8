// Package fs is a server's directories: which of them belong together, who uses them, which block manager they
// have, in which file a block lies, and what a container holds beside its live blocks.
package fs
