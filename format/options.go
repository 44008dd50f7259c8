package format

import "maps"

// MergeOptions merges options of both kinds; strings take precedence.
func MergeOptions(opts map[string]string, typed Options) map[string]string {
	if typed == nil {
		return opts
	}
	both := typed.Strings()
	if both == nil {
		return opts
	}
	maps.Copy(both, opts)
	return both
}

// Written returns the summary of what a writer has written, as far as it is known before Close.
func Written(w Writer) Summary {
	if s, ok := w.(interface{ Summary() Summary }); ok {
		return s.Summary()
	}
	return Summary{}
}
