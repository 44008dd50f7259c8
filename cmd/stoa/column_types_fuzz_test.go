package main

import (
	"errors"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/schemafmt"
)

// FuzzColumns parses the columns of create: what it does not understand is wrong use, however deep it goes.
func FuzzColumns(f *testing.F) {
	f.Add("id bigint, name string -- the name\nprice decimal(10,2)\n`a b` " +
		"struct<x:double,y:map<string,array<int>>>\nv varchar(20)")
	f.Add("a " + strings.Repeat("array<", 1000))
	f.Fuzz(func(t *testing.T, text string) {
		fields, err := schemafmt.ParseColumns(text)
		if err != nil {
			if !errors.As(err, new(*cli.UseError)) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		for _, x := range fields {
			if x.Name == "" || x.Type == nil {
				t.Fatalf("%+v", x)
			}
			display.TypeName(x.Type)
			display.TypeWord(x.Type)
		}
	})
}

// TestDeepColumns: five million arrays in each other are wrong use, not the end of the stack.
func TestDeepColumns(t *testing.T) {
	if _, err := schemafmt.ParseColumns("a " + strings.Repeat("array<", 5_000_000)); !errors.As(err,
		new(*cli.UseError)) {
		t.Errorf("%.100v", err)
	}
}
