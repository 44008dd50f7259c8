package attack

import (
	"slices"
	"testing"
)

// TestBudgets: an intact place that needs more than its budget is not damaged. With any budget, a verb returns all rows
// or exits with 1.
func TestBudgets(t *testing.T) {
	a := newAttack(build(t), t.TempDir())
	refused := 0
	for i := range makers {
		m := &makers[i]
		f, err := a.newFixture(m, 2, 2, 0, 1)
		if _, ok := err.(*errRefused); ok {
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		for _, flag := range []string{"--max-page", "--max-metadata", "--max-fields"} {
			for _, most := range []string{"1", "100"} {
				for k, verb := range []string{"cat", "verify"} {
					if testing.Short() && (i+k+len(flag+most))%4 > 0 {
						continue
					}
					args := []string{flag, most}
					if verb == "cat" {
						args = append(args, "-f", "jsonl")
					}
					got := a.verb(f, f.dir, verb, args...)
					switch {
					case got.Status == cannot:
						refused++
					case got.Status != fine:
						t.Errorf("%s, seed 2: %s %s %s ended with %d: %s%s", m.name, verb, flag, most, got.Status,
							short(got.Stderr), short(got.Stdout))
					case verb == "cat" && !slices.Equal(linesOf(got.Stdout), f.ref):
						t.Errorf("%s, seed 2: cat %s %s ended with 0, and %s", m.name, flag, most,
							difference(f.ref, linesOf(got.Stdout)))
					}
				}
			}
		}
	}
	if refused < len(makers) {
		t.Errorf("only %d verbs were refused for a small budget: expected one for each maker or more", refused)
	}
}
