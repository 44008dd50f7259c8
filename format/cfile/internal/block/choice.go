package block

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
)

var BoolNames = map[string]bool{"true": true, "false": false}

func Number(key, v string, least, most int) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		return 0, fault.Invalidf("cfile: option %s=%s: a number from %d to %d is wanted", key, v, least, most)
	}
	return n, nil
}

// SizeOption is a number of bytes, perhaps with a unit.
func SizeOption(key, v string, least, most int) (int, error) {
	n, ok := format.ParseSize(v)
	if !ok || n < int64(least) || n > int64(most) {
		return 0, fault.Invalidf("cfile: option %s=%s: a number of bytes from %d to %d is wanted, as 65536 or 64KiB",
			key, v, least, most)
	}
	return int(n), nil
}

func Pick[T any](key, v string, values map[string]T) (T, error) {
	x, ok := values[v]
	if !ok {
		return x, fault.Invalidf("cfile: option %s=%s: one of %s is wanted", key, v,
			strings.Join(slices.Sorted(maps.Keys(values)), ", "))
	}
	return x, nil
}

// TypeOption is the type that its String names.
func TypeOption(name string) (Type, error) {
	for t, info := range Types {
		if info.Name == name {
			return t, nil
		}
	}
	return -1, fault.Invalidf("cfile: there is no type %q", name)
}
