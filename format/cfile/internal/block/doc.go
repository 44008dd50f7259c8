// Package block parses the structures of CFiles: header, footer and index blocks, and data blocks of every encoding. It
// also has their types, the codes of findings, and the encoded keys that compare as bytes. Its functions work on bytes
// in memory; their errors have the place in the file, or are relative to the bytes they were given.
package block
