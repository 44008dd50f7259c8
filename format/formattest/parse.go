package formattest

import (
	"testing"

	"stoa/pred"
)

func mustParse(t testing.TB, s string) *pred.Expr {
	t.Helper()
	e, err := pred.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
