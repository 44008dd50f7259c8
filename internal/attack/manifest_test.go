package attack

import (
	"regexp"
	"slices"
	"strings"
)

// verdict is the output of verify -f json.
type verdict struct {
	Healthy  bool      `json:"healthy"`
	Errors   int       `json:"errors"`
	Findings []finding `json:"findings"`
}

type finding struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	From     *int64 `json:"from"`
	To       *int64 `json:"to"`
	Lost     *int64 `json:"lost"` // nil: not known
}

// ofNames reports whether a finding states that everything but the names of columns is covered by checksums.
func ofNames(f finding) bool {
	return f.Code == "file.unchecked" && strings.Contains(f.Message, "no checksum is over the ")
}

func (v *verdict) says(code string) bool {
	return slices.ContainsFunc(v.Findings, func(f finding) bool { return f.Code == code })
}

// lost is a manifest.
type lost struct {
	Finished bool      `json:"finished"`
	Findings []finding `json:"findings"`
	Losses   []loss    `json:"losses"`
}

type loss struct {
	Part   string `json:"part"`
	Group  int    `json:"group"`
	Column string `json:"column"`
	From   *int64 `json:"from"`
	To     *int64 `json:"to"`
	Exact  bool   `json:"exact"`
	Reason string `json:"reason"`
}

// unmet removes the losses that repeat a finding about the sum of all rows, and reports whether each such finding has
// one. These excuse nothing: the losses that were met have to be right without them.
func (m *lost) unmet() (all bool) {
	said, unknown := map[string]bool{}, 0
	for _, f := range m.Findings {
		if f.Code == "output.rows.undeclared" {
			said[f.Message] = true
			unknown++
		}
	}
	n := len(m.Losses)
	m.Losses = slices.DeleteFunc(m.Losses, func(l loss) bool { return said[l.Reason] && !l.Exact })
	return n-len(m.Losses) >= unknown
}

// inside matches codes of findings about values; an error with another code may be about names, types and the order of
// columns.
var inside = regexp.MustCompile(`\.(block|page|dict|delta|bloom|index|rows?|values?)\b`)

// guessed reports whether an error means that names, types and the order of columns may not be the file's own.
func (m *lost) guessed() bool {
	return slices.ContainsFunc(m.Findings,
		func(f finding) bool { return f.Severity == "error" && !inside.MatchString(f.Code) })
}

func (m *lost) says(code string) bool {
	return slices.ContainsFunc(m.Findings, func(f finding) bool { return f.Code == code })
}

// without returns the losses but those of a column that no row of out has: recovery is without such a column, and the
// rows are there.
func (m *lost) without(out []string) *lost {
	left := *m
	has := map[string]bool{}
	left.Losses = slices.DeleteFunc(slices.Clone(m.Losses), func(l loss) bool {
		if _, asked := has[l.Column]; !asked {
			has[l.Column] = len(out) == 0 || l.Column == "" ||
				slices.ContainsFunc(out, func(row string) bool { return carries(row, l.Column) })
		}
		return !has[l.Column]
	})
	return &left
}

// carries reports whether a row, or a struct in it, has a column, whose name is the path to it. What is in a list or a
// map counts as there.
func carries(row, column string) bool {
	return slices.ContainsFunc(cellsOf(row), func(c cell) bool {
		rest, inside := strings.CutPrefix(column, c.name+".")
		return column == c.name || inside && (strings.HasPrefix(c.value, "[") || carries(c.value, rest))
	})
}

// rows is the number of rows in the losses; exact is false if it is unknown.
func (m *lost) rows() (n int64, exact bool) {
	type group struct {
		part string
		n    int
	}
	spans := map[group][][2]int64{}
	exact = true
	for _, l := range m.Losses {
		if !l.Exact || l.From == nil || l.To == nil || *l.From < 0 || *l.To < 0 {
			exact = false
			continue
		}
		g := group{l.Part, l.Group}
		spans[g] = append(spans[g], [2]int64{*l.From, *l.To})
	}
	for _, s := range spans {
		slices.SortFunc(s, func(a, b [2]int64) int { return int(a[0] - b[0]) })
		at := int64(0)
		for _, x := range s {
			n += max(0, x[1]-max(x[0], at))
			at = max(at, x[1])
		}
	}
	return n, exact
}

// has reports whether row of the only row group is reported as lost in column; "" stands for any column.
func (m *lost) has(row int, column string) bool {
	for _, l := range m.Losses {
		if l.From == nil || l.To == nil || int64(row) < *l.From || *l.To >= 0 && int64(row) >= *l.To {
			continue
		}
		if column == "" || l.Column == "" || l.Column == column {
			return true
		}
	}
	return false
}

// doubts reports whether an error names row, so that it may never have existed.
func (m *lost) doubts(row int) bool {
	return slices.ContainsFunc(m.Findings, func(f finding) bool {
		return f.Severity == "error" && f.From != nil && f.To != nil && *f.From <= int64(row) && int64(row) < *f.To
	})
}

// doubted returns the number of rows that, according to errors naming them, come from what may be a copy.
func (m *lost) doubted() (n int64) {
	for _, f := range m.Findings {
		if f.Code == "redfile.rows.lost" && f.From != nil && f.To != nil && *f.To > *f.From {
			n += *f.To - *f.From
		}
	}
	return n
}
