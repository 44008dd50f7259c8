package describe_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"stoa/fault"
	"stoa/internal/describe"
	"stoa/region"
)

func span(off, n int64) fault.Span { return fault.Span{Object: "f", Off: off, Len: n} }

// anatomy leaves a gap from 10 to 20, and claims 25 to 30 twice.
func anatomy(o *describe.Outline) error {
	o.Node(0, region.Struct, "file", "", span(0, 40))
	o.Node(1, region.Data, "a", "", span(0, 10))
	o.Node(1, region.Data, "b", "", span(20, 10))
	o.Node(1, region.Data, "c", "", span(25, 15))
	o.Gaps(1, span(0, 40))
	o.Keep(errors.New("first"))
	o.Keep(errors.New("second"))
	return o.First()
}

func TestStream(t *testing.T) {
	var names []string
	for n, err := range describe.Stream(t.Context(), false, anatomy) {
		if err != nil {
			n.Name = err.Error()
		}
		names = append(names, n.Name)
	}
	if want := []string{"file", "a", "b", "c", "gap", "first"}; !slices.Equal(names, want) {
		t.Errorf("%q, expected %q", names, want)
	}
	n := 0
	for range describe.Stream(t.Context(), false, anatomy) { // the error is not yielded to a consumer that has stopped
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d nodes, expected 2", n)
	}
}

func TestClaims(t *testing.T) {
	show := func(o *describe.Outline) error {
		o.Node(0, region.Struct, "file", "", span(0, 40))
		o.Node(1, region.Data, "b", "", span(20, 10))
		o.Node(1, region.Data, "c", "", span(25, 15))
		return nil
	}
	gaps, overlaps, err := describe.Claims(t.Context(), span(0, 40), show)
	if !slices.Equal(gaps, []fault.Span{span(0, 20)}) || !slices.Equal(overlaps, []fault.Span{span(25, 5)}) ||
		err != nil {
		t.Errorf("gaps %v, overlaps %v, %v", gaps, overlaps, err)
	}
}

// TestManyRoots: a file may have several top-level nodes, and a table several files.
func TestManyRoots(t *testing.T) {
	show := func(o *describe.Outline) error {
		o.Node(0, region.Struct, "other", "", fault.Span{Object: "e", Len: 7})
		o.Node(0, region.Data, "magic", "", span(0, 4))
		o.Node(0, region.Struct, "a", "", span(4, 16))
		o.Node(1, region.Data, "b", "", span(4, 10))
		o.Node(0, region.Data, "magic", "", span(36, 4))
		return nil
	}
	gaps, overlaps, err := describe.Claims(t.Context(), span(0, 40), show)
	if !slices.Equal(gaps, []fault.Span{span(14, 22)}) || len(overlaps) > 0 || err != nil {
		t.Errorf("gaps %v, overlaps %v, %v", gaps, overlaps, err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for n, err := range describe.Stream(ctx, false, anatomy) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v after the end of the context", n, err)
		}
	}
}
