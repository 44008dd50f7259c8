// Package documents compares stoa with encoders and decoders of Trevni (the wiki's) and RedFile (generations A to E)
// that were written from the documents alone, in Python. See README.md.
package documents
