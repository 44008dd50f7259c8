// Package schemafmt writes schemas as other systems want them (SQL, Avro, JSON), and reads the types of columns
// that people write.
package schemafmt
