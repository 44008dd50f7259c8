// Package ipc reads and writes Apache Arrow files and streams (format name "arrow").
//
//	stream  ::= message* end?
//	message ::= FF FF FF FF · metadata length (int32) · metadata (flatbuffer Message, padded to 8) · body
//	            before Arrow 0.15 without the FF FF FF FF
//	end     ::= FF FF FF FF 00 00 00 00
//	file    ::= "ARROW1" 00 00 · stream · footer (flatbuffer Footer) · footer length (int32) · "ARROW1"
//
// The messages are a schema, dictionaries and record batches. The footer of a file names the position of every
// dictionary and batch, so batches of a file are found at random; a stream is read from its start.
//
// Bytes become arrays in the library (arrow-go). What the library would take on a stranger's word is looked at
// first, in the same parser that Describe uses: every length and offset against the bytes that are there, the
// declared uncompressed size of a buffer against what its codec can do at best, the depth of the schema. What
// comes out is validated in full (offsets, dictionary indices, null counts) before it is given away, so that
// damage is an error here and not a panic later. The format has no checksums: a flipped bit in a value is not
// noticed by anybody.
//
// A file's row groups are its record batches. A stream has one row group, of -1 rows. Dictionary types stay
// what they are.
package ipc
