// Package trevni has Apache Avro's own reader read the Trevni files that stoa writes in Avro's dialect:
// 1.12.2, and 1.7.4 for version 1. See ../README.md. It has the random schemas and rows, and the comparison
// of Arrow values with Avro's JSON, which the tests of package format/trevni use, too.
package trevni
