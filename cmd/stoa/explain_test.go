package main

import (
	"testing"

	"stoa/cmd/stoa/internal/look"
	"stoa/store"
)

// TestExplainCounts: ScanBytes counts bytes as often as they are read, Distinct counts them once.
func TestExplainCounts(t *testing.T) {
	var got look.ExplainRan
	got.Count([]store.Read{
		{Name: "b", Off: 0, Got: 100}, {Name: "b", Off: 50, Got: 50}, // to open
		{Name: "a", Off: 10, Got: 5}, {Name: "b", Off: 90, Got: 30}, {Name: "a", Off: 0, Got: 10},
		{Name: "a", Off: 12, Got: 0}, {Name: "b", Off: 200, Got: 1},
	}, 2)
	if want := (look.ExplainRan{OpenReads: 2, OpenBytes: 150, ScanReads: 5, ScanBytes: 46,
		Distinct: 136}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
