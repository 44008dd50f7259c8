package format

import "context"

// Assembly makes one place of tables that Create wrote to directories of their own, beside each other in the directory
// that becomes the place. Its methods are not called concurrently.
type Assembly interface {
	// Options returns options for writing the next table, so that it fits in with the others. What the user gave wins.
	// name is the table's, if its schema has no other.
	Options(name string) map[string]string
	// Check looks at a table that was written, and returns its name in the place, or an error if it does not fit in.
	Check(ctx context.Context, dir string) (table string, err error)
	// Take moves a table into the place. A call that was interrupted can be repeated.
	Take(ctx context.Context, dir string) error
	// Own returns an error if one of the directories of which the place consists (see Format.Assembled) is there, and
	// is not what an assembly of these tables has made. tables are those that were taken, by the names that Check
	// returned.
	Own(ctx context.Context, name string, tables []string) error
	// Finish writes what the tables have in common, and replaces what an earlier Finish wrote.
	Finish(ctx context.Context) error
}
