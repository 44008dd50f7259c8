package laws_test

import (
	"errors"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// verified returns the error that ends verification, and the number of error findings.
func verified(t *testing.T, uri string, o stoa.OpenOptions) (reported int, err error) {
	for f, failed := range stoa.Verify(t.Context(), uri, o) {
		if failed != nil {
			err = failed
		} else if f.Severity == region.Error {
			reported++
		}
	}
	return reported, err
}

// TestWrongUseIsNoDamage: a wrong option is wrong use for verification as it is for reading, in every format and at
// every depth, and never makes an intact file look damaged.
func TestWrongUseIsNoDamage(t *testing.T) {
	for _, p := range heldPlaces(t) {
		for _, opts := range []map[string]string{{"nosuch": "1"}, {"schema": "nosuch.json"}} {
			o := stoa.OpenOptions{Tree: store.NewMemory(p.files), Formats: everyFormat, Opts: opts}
			table, opening := stoa.Open(t.Context(), p.uri(), o)
			if opening == nil {
				table.Close()
			}
			if opts["nosuch"] != "" && !errors.Is(opening, fault.Invalid) {
				t.Errorf("%s, %v: opening gives %v", p.name, opts, opening)
			}
			for _, o.Depth = range []format.Depth{format.Quick, format.Sums, format.Deep} {
				reported, err := verified(t, p.uri(), o)
				if reported > 0 {
					t.Errorf("%s, %v, %v: %d errors are reported of an intact place", p.name, opts, o.Depth, reported)
				}
				if errors.Is(opening, fault.Invalid) && o.Depth != format.Quick && !errors.Is(err, fault.Invalid) {
					t.Errorf("%s, %v, %v: opening gives %v, verification %v", p.name, opts, o.Depth, opening, err)
				}
			}
		}
	}
}

// TestWrongSegment: verifying a segment that does not exist is wrong use.
func TestWrongSegment(t *testing.T) {
	o := stoa.OpenOptions{Formats: []format.Format{carbon.Format}, Opts: map[string]string{"segment": "99"}}
	uri := "corpus/carbon/2.3.0/managed/managed1"
	if reported, err := verified(t, uri, o); reported > 0 || !errors.Is(err, fault.Invalid) {
		t.Errorf("%d errors, %v", reported, err)
	}
	o.Opts["segment"] = "0"
	if reported, err := verified(t, uri, o); reported > 0 || err != nil {
		t.Errorf("an existing segment: %d errors, %v", reported, err)
	}
}
