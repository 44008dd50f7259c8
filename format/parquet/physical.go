package parquet

import "stoa/format"

// Physical returns the physical type of each column of a reader of this format, as the specification names it; nil for
// readers of other formats.
func Physical(r format.Reader) (out []string) {
	if r, ok := r.(*reader); ok {
		for _, c := range r.Leaves {
			out = append(out, c.PhysicalType().String())
		}
	}
	return out
}
