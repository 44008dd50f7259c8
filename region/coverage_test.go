package region

import (
	"fmt"
	"testing"

	"stoa/fault"
)

func TestCoverage(t *testing.T) {
	node := func(depth int, off, n int64) Node {
		return Node{Depth: depth, At: fault.Span{Object: "f", Off: off, Len: n}, Inner: -1}
	}
	var c Coverage
	for _, n := range []Node{
		node(0, 0, 100),
		node(1, 0, 10), // a leaf
		node(1, 10, 20),
		node(2, 10, 5),
		{Depth: 3, At: fault.Span{Object: "f", Off: 10, Len: 20}, Inner: 7}, // not exact
		node(2, 15, 10), // nothing claims 25 to 30
		node(1, 30, 10),
		node(1, 35, 10), // 35 to 40 is claimed twice
		{Depth: 1, At: fault.Span{Object: "g", Off: 0, Len: 100}, Inner: -1},
		{Depth: 1, Kind: Gap, At: fault.Span{Object: "f", Off: 45, Len: 5}, Inner: -1},
		node(1, 50, 50),
	} {
		c.Add(n)
	}
	gaps, overlaps := c.Check(fault.Span{Object: "f", Off: 0, Len: 120})
	if got, want := fmt.Sprint(gaps, overlaps), "[f[25+5] f[45+5] f[100+20]] [f[35+5]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	gaps, overlaps = c.Check(fault.Span{Object: "h", Len: 3})
	if got, want := fmt.Sprint(gaps, overlaps), "[h[0+3]] []"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if gaps, _ = c.Check(fault.Span{Object: "f", Off: 26, Len: 2}); fmt.Sprint(gaps) != "[f[26+2]]" {
		t.Error(gaps)
	}
}
