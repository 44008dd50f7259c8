package format

import "context"

// Level is a depth at which a scan can skip something.
type Level string

// The levels, from the outside in.
const (
	LevelPart  Level = "parts"      // tablets, files, segments
	LevelGroup Level = "row groups" // DiskRowSets, blocklets, row groups
	LevelRows  Level = "rows"       // within a row group
	LevelDict  Level = "dictionary" // of a column's pages; not plural, for the width of tables
	LevelPage  Level = "pages"      // of a column
)

// Skip is what a reader skipped because no row of it can pass the query's filter. The engine counts what it skips
// itself; readers report what they leave out of Parts and RowGroups, and why Narrow left out rows.
type Skip struct {
	Level Level
	Why   string // the means by which it is known, in a word or two: "key range", "bloom filter", "page index"
	Bytes int64  // stored, about; -1 not known. Not looked at for LevelRows: the engine counts rows itself.
}

type skipKey struct{}

// WithSkips returns a context with which readers call report, from any goroutine, for each Skip.
func WithSkips(ctx context.Context, report func(Skip)) context.Context {
	return context.WithValue(ctx, skipKey{}, report)
}

// Skipped reports a Skip to the function given to WithSkips, if there is one. It costs next to nothing if there is
// none.
func Skipped(ctx context.Context, s Skip) {
	if report, ok := ctx.Value(skipKey{}).(func(Skip)); ok {
		report(s)
	}
}
