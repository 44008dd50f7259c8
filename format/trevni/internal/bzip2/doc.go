// Package bzip2 compresses with bzip2, one of the codecs of Trevni. It is simple rather than fast.
package bzip2
