package rerun

import (
	"path/filepath"
	"slices"
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/fault"
	"stoa/store"
	"stoa/store/remote"
)

// Differing returns the settings that are in only one of two lists.
func Differing(a, b []string) (out []string) {
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	for _, s := range b {
		if !slices.Contains(a, s) {
			out = append(out, "now "+s)
		}
	}
	return out
}

// SourceKey returns what is the same for all spellings of a source, which is relative to dir.
func SourceKey(source, dir string) string {
	place := cli.WithoutTable(source)
	table := source[len(place):]
	switch {
	case strings.HasPrefix(place, store.RootsMark): // several places
	case remote.Is(place):
		place = strings.TrimRight(place, "/")
	case filepath.IsAbs(place):
		place = filepath.Clean(place)
	default:
		place = filepath.Join(dir, place)
	}
	return place + table
}

// EarlierError says why the output of an earlier run is not what the sources have now. It counts as damage of these.
type EarlierError struct{ Text string }

func (e *EarlierError) Error() string { return e.Text }

func (e *EarlierError) Is(target error) bool { return target == fault.Corrupt || target == cli.ErrSaid }
