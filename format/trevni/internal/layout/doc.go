// Package layout parses and formats the bytes of a Trevni file outside of its blocks' values: the header and metadata
// of the three dialects, types, codecs, the checksum of the header, and the kinds of findings.
package layout
