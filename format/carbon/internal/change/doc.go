// Package change changes a table: create, load, update, delete, compact, evolve the schema, merge indexes, clean. Files
// are written first, under names that nothing refers to; one rename of tablestatus then commits the change, so an
// interrupted change leaves nothing but files that Clean removes. Locks and file names are CarbonData's own, so its
// programs may use the table at the same time.
package change
