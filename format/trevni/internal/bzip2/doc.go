// Package bzip2 makes bzip2 streams, which Trevni files may be compressed with; it is not the fastest, and right.
package bzip2
