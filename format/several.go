package format

import (
	"strings"

	"stoa/fault"
)

// severalShown is how many names an error says.
const severalShown = 12

// Several is the error, of class Invalid, about a place of which one table was wanted and that holds several:
// tables are their names, as they are given to open one.
func Several(place string, tables []string) error {
	names := strings.Join(tables[:min(len(tables), severalShown)], ", ")
	if len(tables) > severalShown {
		names += ", … (stoa ls lists them)"
	}
	return fault.Invalidf("%s holds %d tables; name one: %s", place, len(tables), names)
}
