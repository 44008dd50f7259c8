// Package block is the lowest floor of CFile: header, footer and index blocks, data blocks of every encoding,
// and the keys by which values compare as bytes. Plain functions on bytes, placed errors.
package block
