// Package ipc reads and writes Apache Arrow files and streams (format name "arrow").
//
//	stream  ::= message* end?
//	message ::= FF FF FF FF · metadata length (int32) · metadata (flatbuffer Message, padded to 8) · body
//	            before Arrow 0.15 without the FF FF FF FF
//	end     ::= FF FF FF FF 00 00 00 00
//	file    ::= "ARROW1" 00 00 · stream · footer (flatbuffer Footer) · footer length (int32) · "ARROW1"
//
// The messages are a schema, dictionaries and record batches. The footer of a file has the position of every dictionary
// and batch, so that batches of a file can be read in any order; a stream is read from its start.
//
// The library (arrow-go) makes arrays from the bytes. Everything that the library trusts is checked first, by the same
// parser that Describe uses: every length and offset against the available bytes, the declared uncompressed size of a
// buffer against what its codec can achieve, and the depth of the schema. The resulting arrays are validated in full
// (offsets, dictionary indices, null counts) before they are returned, so that damage is an error here and not a panic
// later. The format has no checksums: a flipped bit in a value goes unnoticed.
//
// A file's row groups are its record batches. A stream has one row group, of -1 rows. Dictionary types are kept.
package ipc
