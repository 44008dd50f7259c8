package literal

import (
	"strings"

	"stoa/internal/sorted"
)

// CloseNames returns up to three of the names that look most like name, nearest first.
func CloseNames(name string, names []string) []string {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, `"`, "")) }
	want := plain(name)
	if len(want) > 200 {
		return nil
	}
	type near struct {
		name string
		dist int
	}
	var found []near
	for _, n := range names {
		p := plain(n)
		dist := distance(want, p, len(want)/3+1)
		if strings.HasSuffix(p, "."+want) {
			dist = 0
		}
		if dist <= len(want)/3 || dist == 1 && len(want) == 2 {
			found = append(found, near{n, dist})
		}
	}
	sorted.StablyBy(found, func(a, b near) int { return a.dist - b.dist })
	var out []string
	for _, f := range found[:min(3, len(found))] {
		if f.dist == 0 || found[0].dist > 0 {
			out = append(out, f.name)
		}
	}
	return out
}

// Suggest names those of the names that look most like name, or all if there are none.
func Suggest(name string, names []string) string {
	if near := CloseNames(name, names); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return "; there are " + strings.Join(names, ", ")
}

// distance returns the number of bytes to insert, delete or change, or of neighbours to exchange, to turn a into b. If
// it exceeds limit, the result is some number above limit.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	above, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			change := row[j]
			if a[i] != b[j] {
				change++
			}
			next[j+1] = min(change, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], above[j-1]+1)
			}
		}
		above, row, next = row, next, above
	}
	return row[len(b)]
}
