package check

import "testing"

// TestRowSumSaysWhose: the finding names what declares the number of rows, and says that it may be another table's if
// recovery found another number.
func TestRowSumSaysWhose(t *testing.T) {
	for want, s := range map[string]RowSum{
		"the metadata of t declare 300 rows, 100 came out, and 0 were reported as lost; recovery found 100: rows are " +
			"missing, or the metadata are another table's": {Table: "t", Declared: 300, Found: 100, Out: 100},
		"t/table.json declares 300 rows, 350 came out, and 50 were reported as lost; recovery found 400: there are " +
			"rows of something else, or the metadata are another table's": {Table: "t", By: "t/table.json",
			Declared: 300, Found: 400, Out: 350, Lost: 50},
		"recovery found 300 rows, 100 came out, and 100 were reported as lost": {Table: "t", Declared: -1, Found: 300,
			Out: 100, Lost: 100},
		"the metadata of t declare 300 rows, 299 came out, and 0 were reported as lost": {Table: "t", Declared: 300,
			Found: 300, Out: 299},
	} {
		if f := s.Finding(); f.Message != want || f.Part != "t" {
			t.Errorf("got %+v, want the message %q", f, want)
		}
	}
}
