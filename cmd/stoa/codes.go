package main

import (
	"cmp"
	"slices"

	"stoa"
	"stoa/internal/seal"
	"stoa/region"
)

// codeDocs are all codes of findings, sorted: those of the formats, and those of no format.
func (a *app) codeDocs() []codeDoc {
	var out []codeDoc
	add := func(codes []region.CodeDoc) {
		for _, c := range codes {
			out = append(out, codeDoc{c.Code, c.Severity.String(), c.Help})
		}
	}
	add(stoa.Codes)
	add(seal.Codes)
	for _, f := range a.formats {
		add(f.Codes)
	}
	slices.SortFunc(out, func(x, y codeDoc) int { return cmp.Compare(x.Code, y.Code) })
	return slices.Compact(out)
}
