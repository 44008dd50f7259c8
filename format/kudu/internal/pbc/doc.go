// Package pbc reads and writes protobuf containers, the files in which Kudu keeps its metadata: a header, and records
// with checksums. It finds records and checks them; what is in a record is for its callers to parse.
package pbc
