package about

import (
	"cmp"
	"slices"
	"strings"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/internal/seal"
	"stoa/internal/sorted"
	"stoa/region"
)

// CodeDocs returns the codes of all findings, sorted: those of the formats, and those that do not belong to a format.
func CodeDocs(a *cli.App) []CodeDoc {
	var out []CodeDoc
	add := func(codes []region.CodeDoc) {
		for _, c := range codes {
			say := Advices()[c.Code]
			out = append(out, CodeDoc{c.Code, c.Severity.String(), c.Help, say.Cost, say.Cause,
				strings.ReplaceAll(say.Next, "`", "")})
		}
	}
	add(stoa.Codes)
	add(seal.Codes)
	for _, f := range a.Formats {
		add(f.Codes)
	}
	sorted.By(out, func(x, y CodeDoc) int { return cmp.Compare(x.Code, y.Code) })
	return slices.Compact(out)
}
