package format

import "context"

// Level is a level of a scan at which things can be skipped.
type Level string

// The levels, from the outside in.
const (
	LevelPart  Level = "parts"      // tablets, files, segments
	LevelGroup Level = "row groups" // DiskRowSets, blocklets, row groups
	LevelRows  Level = "rows"       // within a row group
	LevelDict  Level = "dictionary" // of a column's pages; singular, to keep tables narrow
	LevelPage  Level = "pages"      // of a column
)

// Skip is something that a reader skipped because no row of it can pass the query's filter. The engine counts what it
// skips itself; readers report what they leave out of Parts and RowGroups, and why Narrow left out rows.
type Skip struct {
	Level Level
	Why   string // the means of exclusion, in a word or two: "key range", "bloom filter", "page index"
	Bytes int64  // stored, approximately; -1: not known. Ignored for LevelRows: the engine counts rows itself
}

type skipKey struct{}

// WithSkips returns a context in which readers call report, from any goroutine, for each Skip.
func WithSkips(ctx context.Context, report func(Skip)) context.Context {
	return context.WithValue(ctx, skipKey{}, report)
}

// Skipped reports a Skip to the function passed to WithSkips. Without one it costs next to nothing.
func Skipped(ctx context.Context, s Skip) {
	if report, ok := ctx.Value(skipKey{}).(func(Skip)); ok {
		report(s)
	}
}
