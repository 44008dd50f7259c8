package format

import (
	"strconv"
	"strings"
)

var units = map[string]int64{"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10,
	"MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

// ParseSize parses a number of bytes as used in options: 1000, 64kB, 256MB, "512 MiB", 1GiB. ok is false if s is not a
// number, is negative, or exceeds 2^62.
func ParseSize(s string) (n int64, ok bool) {
	digits := strings.TrimRight(s, "kKMGTiB")
	unit, ok := units[s[len(digits):]]
	n, err := strconv.ParseInt(strings.TrimSuffix(digits, " "), 10, 64)
	if err != nil || !ok || n < 0 || n > (1<<62)/unit {
		return 0, false
	}
	return n * unit, true
}
