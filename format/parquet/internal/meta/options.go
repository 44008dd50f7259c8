package meta

import (
	"stoa/fault"
	"stoa/format"
)

func CheckOpts(opts map[string]string, keys []format.OptionKey) error {
next:
	for k := range opts {
		for _, have := range keys {
			if have.Name == k {
				continue next
			}
		}
		return fault.Invalidf("format parquet has no option %q", k)
	}
	return nil
}
