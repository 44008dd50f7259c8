package health_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"stoa/format"
	"stoa/format/formattest/toy"
	"stoa/internal/check"
	"stoa/internal/health"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
)

// wrongCounts declares other numbers of rows than its pages have.
type wrongCounts struct {
	format.Reader
	part, group int64 // added to the declared numbers
}

func (l wrongCounts) Parts(ctx context.Context, q format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		for p, err := range l.Reader.Parts(ctx, q) {
			p.Rows += l.part
			yield(p, err)
		}
	}
}

func (l wrongCounts) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	groups, err := l.Reader.RowGroups(ctx, p, q)
	groups[0].Rows += l.group
	return groups, err
}

// TestCountsAgree: parts, row groups and pages must have the same number of rows, even where no page is decoded.
func TestCountsAgree(t *testing.T) {
	n := toy.Column{Name: "n", Ints: make([]int64, 50)}
	tree := store.NewMemory(map[string][]byte{"f": toy.File(20, 7, n)})
	r, err := toy.Format.Open(t.Context(), format.Target{Tree: tree, Name: "f"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, depth := range []format.Depth{format.Quick, format.Deep} {
		for l, want := range map[wrongCounts][]string{
			{}:                   nil,
			{part: 1}:            {"51, its row groups have 50"},
			{part: 3, group: 3}:  {"row group 0: 23 rows, its pages have 20"},
			{part: 0, group: -1}: {"row group 0: 19 rows, its pages have 20", "50, its row groups have 49"},
		} {
			l.Reader = r
			var found []region.Finding
			src := scan.Source{Reader: l, Objects: scan.NewObjects(tree), Dicts: scan.NewDicts(),
				Limits: format.Limits{}.WithDefaults()}
			if err := health.Verify(t.Context(), src, depth, check.Collect(t.Context(), "f", nil, &found)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				if got = append(got, f.Message); f.Code != health.Damaged || f.Severity != region.Error {
					t.Errorf("%+v", f)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s, %+d rows, %+d in a group: %q, expected %q", depth, l.part, l.group, got, want)
			}
		}
	}
}

// failing is a store whose operations fail.
type failing struct{ store.Tree }

func (failing) Open(context.Context, string) (store.Source, error) {
	return nil, fmt.Errorf("no disk")
}

// TestOtherErrorsAreNoFindings: bytes that could not be read are not damage.
func TestOtherErrorsAreNoFindings(t *testing.T) {
	tree := store.NewMemory(map[string][]byte{"f": toy.File(20, 7, toy.Column{Name: "n", Ints: make([]int64, 50)})})
	r, err := toy.Format.Open(t.Context(), format.Target{Tree: tree, Name: "f"}, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	src := scan.Source{Reader: r, Objects: scan.NewObjects(failing{tree}), Dicts: scan.NewDicts(),
		Limits: format.Limits{}.WithDefaults()}
	var found []region.Finding
	err = health.Verify(t.Context(), src, format.Deep, check.Collect(t.Context(), "f", nil, &found))
	if err == nil || len(found) > 0 {
		t.Errorf("error %v, findings %+v", err, found)
	}
}
