package cli

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"stoa/store/remote"
)

// Resolved returns a place without symbolic links.
func Resolved(place string) string {
	if to, err := filepath.EvalSymlinks(place); err == nil {
		return to
	}
	return place
}

// Beside returns a place relative to the output of a run, which may have been moved together with it.
func Beside(place, out string) string {
	if rel, err := filepath.Rel(Resolved(out), Resolved(place)); err == nil && !remote.Is(place) && !remote.Is(out) {
		return rel
	}
	return place
}

// Duration parses the duration of --every, with days and weeks.
func Duration(s string) (d time.Duration, err error) {
	unit := time.Duration(0)
	switch {
	case strings.HasSuffix(s, "d"):
		unit = 24 * time.Hour
	case strings.HasSuffix(s, "w"):
		unit = 7 * 24 * time.Hour
	}
	if unit > 0 {
		n, e := strconv.ParseFloat(s[:len(s)-1], 64)
		d, err = time.Duration(n*float64(unit)), e
	} else {
		d, err = time.ParseDuration(s)
	}
	if err != nil || d < time.Millisecond {
		return 0, WrongUse("--every: expected a duration such as 1d, 6h or 30m (or segment, of a CarbonData "+
			"table), found %s", s)
	}
	return d, nil
}
