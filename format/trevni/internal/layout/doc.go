// Package layout parses and writes the bytes of a Trevni file outside of blocks: the header and metadata of the three
// dialects, types, codecs and the checksum of the header. It also has the codes of findings.
package layout
