package check

import (
	"cmp"
	"maps"
	"path"
	"slices"

	"stoa/fault"
	"stoa/internal/sorted"
	"stoa/region"
)

// Incident is a group of findings with one cause: a damaged run of bytes in one object, or one missing item without
// which much else cannot be read.
type Incident struct {
	First   region.Finding // the first of the most severe findings, which is displayed
	At      fault.Span     // the run of bytes that contains the findings; At of First if they are not about bytes
	N       int            // number of findings, including First
	Codes   []CodeCount    // most frequent first
	Tables  []string       // named by findings separately from their parts; at most maxNames
	Parts   []string       // tables, tablets, segments or files; at most maxNames, the rest is only counted
	Columns []string       // the same
	Lost    int64          // total of rows (or cells, in columns) reported as lost; -1 if some cannot be counted
	Listed  []int          // indices of the findings
}

// CodeCount is the number of findings in an incident with the same code.
type CodeCount struct {
	Code string `json:"code"`
	N    int    `json:"n"`
}

// nearby is the maximum distance in bytes between findings of one run: often only the end of a damaged block is found.
const nearby = 64 << 10

// maxPage is the size above which a span is assumed to be a file, a column or an index and not a page.
const maxPage = 1 << 20

// maxNames is the number of names that an incident keeps.
const maxNames = 16

// maxRepeated is the number of findings with one code about one part that are shown individually; more become one
// incident.
const maxRepeated = 3

// Fold groups findings into incidents, in the order of their first findings. Findings belong to one incident if they
// are errors or warnings in one run of bytes of an object, or if more than three of them have the same code and the
// same part or object (such as a container in which every block is missing), or are warnings with the same code about
// whole files of one directory (such as the logs of a server's tablets, which were not copied with its data).
func Fold(findings []region.Finding) []Incident {
	group := make([]int, len(findings)) // the finding that represents the incident
	for i := range group {
		group[i] = i
	}
	byBytes(findings, group)
	byCode(findings, group)
	at := map[int]int{}
	var out []Incident
	for i, f := range findings {
		root := find(group, i)
		k, ok := at[root]
		if !ok {
			k = len(out)
			at[root] = k
			out = append(out, Incident{First: f, At: f.At})
		}
		out[k].add(i, f)
	}
	for k := range out {
		out[k].finish(findings)
	}
	return out
}

func find(group []int, i int) int {
	for group[i] != i {
		group[i] = group[group[i]]
		i = group[i]
	}
	return i
}

func join(group []int, i, j int) {
	i, j = find(group, i), find(group, j)
	group[max(i, j)] = min(i, j)
}

// byBytes joins findings in one run of bytes. A finding about a large part of an object belongs to the run in it if
// there is only one; if there are several, each has its own cause, and the finding stays separate.
func byBytes(findings []region.Finding, group []int) {
	var small, large []int
	for i, f := range findings {
		switch {
		case f.At.Object == "" || f.At.Len <= 0 || f.Severity == region.Note:
		case f.At.Len > maxPage:
			large = append(large, i)
		default:
			small = append(small, i)
		}
	}
	sorted.StablyBy(small, func(i, j int) int {
		a, b := findings[i].At, findings[j].At
		return cmp.Or(cmp.Compare(a.Object, b.Object), cmp.Compare(a.Off, b.Off))
	})
	var runs []run
	for _, i := range small {
		at := findings[i].At
		if n := len(runs); n > 0 && runs[n-1].object == at.Object && at.Off <= runs[n-1].end+nearby {
			runs[n-1].end = max(runs[n-1].end, at.End())
			join(group, runs[n-1].first, i)
			continue
		}
		runs = append(runs, run{at.Object, at.Off, at.End(), i})
	}
	for _, i := range large {
		if inside := within(runs, findings[i].At); len(inside) == 1 {
			join(group, inside[0].first, i)
		}
	}
}

// run is the contiguous bytes [off, end) of an object, and the first finding about them.
type run struct {
	object   string
	off, end int64
	first    int
}

// within returns the runs that touch at, at most two; runs must be sorted by object and offset.
func within(runs []run, at fault.Span) []run {
	k, _ := slices.BinarySearchFunc(runs, at, func(r run, at fault.Span) int {
		return cmp.Or(cmp.Compare(r.object, at.Object), cmp.Compare(r.end, at.Off))
	})
	n := k
	for n < len(runs) && n < k+2 && runs[n].object == at.Object && runs[n].off < at.End() {
		n++
	}
	return runs[k:n]
}

// byCode joins repeated findings about one part or one object.
func byCode(findings []region.Finding, group []int) {
	type key struct{ code, part, object string }
	groups := map[key][]int{}
	for i, f := range findings {
		if f.Severity == region.Warning && f.At.Len == 0 && f.At.Object != "" {
			k := key{f.Code, "", path.Dir(f.At.Object) + "/"}
			groups[k] = append(groups[k], i)
		}
		for _, k := range []key{{f.Code, f.Part, ""}, {f.Code, "", f.At.Object}} {
			if k.part != "" || k.object != "" {
				groups[k] = append(groups[k], i)
			}
		}
	}
	for _, all := range groups {
		if len(all) > maxRepeated {
			for _, i := range all[1:] {
				join(group, all[0], i)
			}
		}
	}
}

func (in *Incident) add(i int, f region.Finding) {
	in.N++
	in.Listed = append(in.Listed, i)
	if f.Severity > in.First.Severity {
		in.First = f
	}
}

// finish computes the totals of the findings.
func (in *Incident) finish(findings []region.Finding) {
	counts := map[string]int{}
	in.Lost = totalLost(findings, in.Listed)
	for _, i := range in.Listed {
		f := findings[i]
		counts[f.Code]++
		in.Tables = addName(in.Tables, f.Table)
		in.Parts = addName(in.Parts, f.Part)
		in.Columns = addName(in.Columns, f.Column)
		if f.At.Object == in.At.Object && in.At.Len > 0 && f.At.Len > 0 {
			end := max(in.At.End(), f.At.End())
			in.At.Off = min(in.At.Off, f.At.Off)
			in.At.Len = end - in.At.Off
		}
	}
	codes := slices.Collect(maps.Keys(counts))
	sorted.By(codes, func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for _, code := range codes {
		in.Codes = append(in.Codes, CodeCount{code, counts[code]})
	}
}

func addName(names []string, name string) []string {
	if name == "" || len(names) == maxNames || slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}
