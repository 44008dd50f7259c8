// Package layout is what the bytes of a Trevni file are called, both ways: header and metadata of the three dialects,
// types, codecs, checksums over the header, and the kinds of findings.
package layout
