package main

import (
	"errors"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/schemafmt"
)

// FuzzColumns parses column definitions of create: every error is a UseError.
func FuzzColumns(f *testing.F) {
	f.Add("id bigint, name string -- the name\nprice decimal(10,2)\n`a b` " +
		"struct<x:double,y:map<string,array<int>>>\nv varchar(20)")
	f.Add("a " + strings.Repeat("array<", 1000))
	f.Fuzz(func(t *testing.T, text string) {
		fields, err := schemafmt.ParseColumns(text)
		if err != nil {
			if !errors.As(err, new(*cli.UseError)) {
				t.Fatalf("got %T %v, want a UseError", err, err)
			}
			return
		}
		for _, x := range fields {
			if x.Name == "" || x.Type == nil {
				t.Fatalf("got field %+v without name or type", x)
			}
			display.TypeName(x.Type)
			display.TypeWord(x.Type)
		}
	})
}

// TestDeepColumns: five million nested arrays are a UseError, not a stack overflow.
func TestDeepColumns(t *testing.T) {
	if _, err := schemafmt.ParseColumns("a " + strings.Repeat("array<", 5_000_000)); !errors.As(err,
		new(*cli.UseError)) {
		t.Errorf("got %.100v, want a UseError", err)
	}
}
