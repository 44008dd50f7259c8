package table

import (
	"maps"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
)

var ReadKeys = []format.OptionKey{
	{Name: "sorted", Values: "NAME,NAME,…",
		Help: "columns that are known to be sorted: those with first values are then searched by them"},
	{Name: "schema", Values: "FILE", Help: "of the wiki's and Impala's dialects: the columns are those of the " +
		"schema in FILE (as stoa schema -f json prints it), whatever the file says of it"},
}

// readOptions are the options of Open, understood.
type readOptions struct {
	sorted []string
	schema string
}

func ParseOptions(opts map[string]string) (o readOptions, err error) {
	for _, k := range slices.Sorted(maps.Keys(opts)) {
		switch k {
		case "sorted":
			o.sorted = strings.Split(opts[k], ",")
		case "schema":
			o.schema = opts[k]
		default:
			return o, fault.Invalidf("trevni: there is no option %q for reading", k)
		}
	}
	return o, nil
}
