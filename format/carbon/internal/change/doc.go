// Package change is what changes a table: create, load, update, delete, compact, evolve the schema, merge indexes,
// clean. One rename of tablestatus makes a change part of the table.
package change
