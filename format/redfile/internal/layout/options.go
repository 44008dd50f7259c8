package layout

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
)

// ReadKeys are the options of Open.
var ReadKeys = []format.OptionKey{
	{Name: "utf8", Values: "true, false",
		Help: "show BYTE_ARRAY columns as text if the file does not say what they are (default false: binary)"},
	{Name: "outside", Values: "true, false",
		Help: "follow a file_path that leads out of the directory of the file (default false)"},
	{Name: "index", Values: "true, false", Help: "use index pages (default true)"},
	{Name: "schema", Values: "FILE", Help: "the columns of a file of generation A or B, or, for recover, of one " +
		"that has lost its metadata, are those of this whole RedFile, or those that FILE says, as stoa schema " +
		"-f json prints them"},
}

// ReadOptions are the options of Open, understood.
type ReadOptions struct {
	UTF8, Outside, NoIndex bool
	Schema                 string
	Kept                   string // taken for the Arrow schema that the file keeps; see reread
}

func ParseOptions(opts map[string]string) (o ReadOptions, err error) {
	for _, k := range slices.Sorted(maps.Keys(opts)) {
		on := false
		switch k {
		case "utf8":
			on, err = Pick(k, opts[k], BoolNames)
			o.UTF8 = on
		case "outside":
			on, err = Pick(k, opts[k], BoolNames)
			o.Outside = on
		case "index":
			on, err = Pick(k, opts[k], BoolNames)
			o.NoIndex = !on
		case "schema":
			o.Schema = opts[k]
		default:
			err = fault.Invalidf("redfile: there is no option %q for reading", k)
		}
		if err != nil {
			return o, err
		}
	}
	return o, nil
}

var BoolNames = map[string]bool{"true": true, "false": false}

func Number(key, v string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < least || n > most {
		return 0, fault.Invalidf("redfile: option %s=%s: a number from %d to %d is wanted", key, v, least, most)
	}
	return n, nil
}

// BytesOf is a number of bytes, perhaps with a unit.
func BytesOf(key, v string, least, most int64) (int64, error) {
	n, ok := format.ParseSize(v)
	if !ok || n < least || n > most {
		return 0, fault.Invalidf("redfile: option %s=%s: a number of bytes from %d to %d is wanted, as 65536 or 64KiB",
			key, v, least, most)
	}
	return n, nil
}

func Pick[T any](key, v string, values map[string]T) (T, error) {
	x, ok := values[v]
	if !ok {
		return x, fault.Invalidf("redfile: option %s=%s: one of %s is wanted", key, v,
			strings.Join(slices.Sorted(maps.Keys(values)), ", "))
	}
	return x, nil
}
