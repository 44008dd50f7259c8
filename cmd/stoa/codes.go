package main

import (
	"cmp"
	"slices"

	"stoa/region"
)

// codeDocs are all codes of findings, sorted: those of the formats, and those of no format.
func (a *app) codeDocs() []codeDoc {
	out := slices.Clone(otherCodes)
	for _, f := range a.formats {
		for _, c := range f.Codes {
			out = append(out, codeDoc{c.Code, c.Severity.String(), c.Help})
		}
	}
	slices.SortFunc(out, func(x, y codeDoc) int { return cmp.Compare(x.Code, y.Code) })
	return slices.Compact(out)
}

// otherCodes are those that belong to no format.
var otherCodes = []codeDoc{
	{"file.unreadable", region.Error.String(), "The file could not be read to its end, and its format has no closer word for why. The place and the message say what was met."},
}
