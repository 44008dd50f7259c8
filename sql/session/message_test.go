package session

import (
	"strings"
	"testing"
)

// TestAsWritten: what DuckDB says of a statement has the names that the statement has, and the mark is under the word
// that it was under.
func TestAsWritten(t *testing.T) {
	for text, want := range map[string]string{
		"no statement in it": "no statement in it",
		"E: x\n\nLINE 1: select n from \"stoa:it's \"\"q\"\".trv:\"\n               ^": "E: x\n\n" +
			"LINE 1: select n from 'it''s \"q\".trv'\n               ^",
		"LINE 1: ...from \"stoa:a.trv:\" join \"stoa:b.trv:\" n\n" + strings.Repeat(" ", 49) + "^": "" +
			"LINE 1: ...from 'a.trv' join 'b.trv' n\n" + strings.Repeat(" ", 37) + "^",
		"no option for stoa_table_100\n\nLINE 1: from STOA_TABLE_100('x', f := 1)\n             ^": "no " +
			"option for stoa\n\nLINE 1: from stoa('x', f := 1)\n             ^",
		"LINE 1: FROM \"stoa:/a/long/name...": "LINE 1: FROM '/a/long/name...",
		"\tstoa_table_3(VARCHAR)":             "  stoa(VARCHAR)",
		"LINE 1: ä\n         ^ and more":      "LINE 1: ä\n         ^ and more",
	} {
		if got := asWritten(text); got != want {
			t.Errorf("expected\n%s\nfound\n%s", want, got)
		}
	}
	file := quote(demo(t) + "/key.cfile")
	for _, statement := range []string{"SELECT nobody FROM " + file, "FROM stoa(" + file + ", nothing := 'x')",
		"FROM stoa()", "FROM stoa(NULL)", "FROM stoa(" + file + ", 'x')", "SELECT * FROM " + file + " GROUP BY",
		"SELECT 'x'::INTEGER FROM " + file} {
		status, _, errs := run(statement)
		if status == 0 || strings.Contains(errs, `"`+ours) || strings.Contains(strings.ToLower(errs), "stoa_table") {
			t.Errorf("%s: status %d, %s", statement, status, errs)
		}
	}
}
