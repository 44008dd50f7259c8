// Package schemafmt writes schemas in the forms of other systems (SQL, Avro, JSON), and parses column types written by
// people.
package schemafmt
