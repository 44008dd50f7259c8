// Package pbc is the protobuf container, the file in which Kudu keeps its metadata: a header, and records with
// checksums. It knows where a record lies and whether it is whole, and nothing of what is in it.
package pbc
