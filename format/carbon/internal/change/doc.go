// Package change changes a table: create, load, update, delete, compact, evolve the schema, merge indexes, clean.
// Files are written first, under names that nothing refers to; one rename of tablestatus then makes the change part
// of the table, so a change that stops half-way leaves files that Clean removes, and no other trace. Locks are
// CarbonData's own, and so are the names of files: its programs may work on the table at the same time.
package change
