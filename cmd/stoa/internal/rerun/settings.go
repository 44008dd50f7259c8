package rerun

import "slices"

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
