package format

import (
	"strings"

	"stoa/fault"
)

// severalShown is the number of names that the error lists.
const severalShown = 12

// Several returns the error, of class Invalid, for a place that holds several tables where one was expected. tables are
// the names with which each can be opened.
func Several(place string, tables []string) error {
	names := strings.Join(tables[:min(len(tables), severalShown)], ", ")
	if len(tables) > severalShown {
		names += ", … (stoa ls lists them)"
	}
	return fault.Invalidf("%s holds %s; name one: %s", place, fault.Count(len(tables), "table"), names)
}
