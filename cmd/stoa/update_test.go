package main

import (
	"testing"

	"stoa/cmd/stoa/internal/change"
)

func TestSetValues(t *testing.T) {
	for in, want := range map[string]string{
		`a=`: "", `a=x y`: "x y", `a="null"`: "null", `a='null'`: "null", `a='it''s'`: "it's",
		`a="say ""no"""`: `say "no"`, `a='`: "'", `a='x"`: `'x"`, `a=b=c`: "b=c", `A = 'x'`: "x",
	} {
		got, err := change.SetValues([]string{in})
		if err != nil || got["a"] == nil || *got["a"] != want {
			t.Errorf("%s: got %v, %v, want %q", in, got, err, want)
		}
	}
	if got, err := change.SetValues([]string{"a=null"}); err != nil || got["a"] != nil {
		t.Errorf("a=null: got %v, %v, want null", got, err)
	}
}
