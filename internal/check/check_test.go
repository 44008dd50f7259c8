package check_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"stoa/fault"
	"stoa/internal/check"
	"stoa/region"
)

var codes = check.Codes{{Code: "x.note", Severity: region.Note}, {Code: "x.bad", Severity: region.Error},
	{Code: "x.read", Severity: region.Error}, {Code: "x.unsupported", Severity: region.Warning}}

func reporter(t *testing.T) (*check.Reporter, *[]region.Finding) {
	var all []region.Finding
	r := check.Collect(t.Context(), "f", codes, &all)
	r.Read, r.Unsupported = "x.read", "x.unsupported"
	r.Whole = fault.Span{Object: "f", Off: 100, Len: 50}
	return r, &all
}

func TestErrorsBecomeFindings(t *testing.T) {
	r, all := reporter(t)
	r.Column = "c"
	span := fault.Span{Object: "f", Off: 90, Len: 100}
	r.Blame("x.bad", fault.Corruptf(span, "p", "it is odd"), 3, 7)
	r.Blame("x.bad", errors.New("no disk"), -1, -1)
	r.Blame("x.bad", fault.Unsupportedf(span, "p", "who knows"), 0, 1)
	r.Blame("x.bad", fault.Limitf(fault.Span{}, "p", "too much"), -1, -1)
	r.Blame("x.bad", nil, -1, -1)
	r.Report("x.note", span, "q", "%d", 1)
	want := []region.Finding{
		{Code: "x.bad", Severity: region.Error, At: r.Whole, Path: "p", Message: "it is odd", Rows: [2]int64{3, 7},
			Lost: 4},
		{Code: "x.read", Severity: region.Error, At: r.Whole, Message: "no disk", Rows: [2]int64{-1, -1}, Lost: -1},
		{Code: "x.unsupported", Severity: region.Warning, At: r.Whole, Path: "p", Message: "who knows",
			Rows: [2]int64{0, 1}, Class: fault.Unsupported},
		{Code: "x.bad", Severity: region.Error, At: r.Whole, Path: "p", Message: "too much", Rows: [2]int64{-1, -1},
			Lost: -1, Class: fault.Limit},
		{Code: "x.note", At: span, Path: "q", Message: "1", Rows: [2]int64{-1, -1}},
	}
	for i := range want {
		want[i].Part, want[i].Column = "f", "c"
	}
	if !slices.Equal(*all, want) {
		t.Errorf("got\n%+v\nexpected\n%+v", *all, want)
	}
}

func TestReportingStops(t *testing.T) {
	n := 0
	r := check.New(t.Context(), "f", codes, func(region.Finding) bool { n++; return n < 2 })
	for range 5 {
		r.Once("a", "x.bad", fault.Span{}, "", "once")
		r.Report("x.bad", fault.Span{}, "", "each")
	}
	if n != 2 || !r.Stopped() {
		t.Errorf("%d findings, stopped %v", n, r.Stopped())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r = check.New(ctx, "f", codes, func(region.Finding) bool { n++; return true }); !r.Stopped() {
		t.Error("a cancelled reporter goes on")
	}
}

func bad(object string, off, length int64, code, part string) region.Finding {
	return region.Finding{Code: code, Severity: region.Error, At: fault.Span{Object: object, Off: off, Len: length},
		Part: part, Rows: [2]int64{-1, -1}, Lost: 1}
}

func TestFold(t *testing.T) {
	var all []region.Finding
	all = append(all, bad("a", 0, 10, "x.magic", "t1"))
	for i := range 1000 { // one zeroed range, page by page, in several tablets
		all = append(all, bad("a", 1<<20+int64(i)*100, 100, "x.page", []string{"t1", "t2"}[i%2]))
	}
	all = append(all, bad("a", 1<<30, 10, "x.page2", "t1"))
	for range 500 { // everything missing in one place
		all = append(all, bad("", 0, 0, "x.block.missing", "t3"))
	}
	all = append(all, bad("b", 0, 10, "x.page", "t4"), bad("b", 1<<20, 10, "x.page", "t4"))
	got := check.Fold(all)
	var ns []int
	for _, in := range got {
		ns = append(ns, in.N)
	}
	if want := []int{1, 1000, 1, 500, 1, 1}; !slices.Equal(ns, want) {
		t.Fatalf("incidents of %v findings, expected %v", ns, want)
	}
	if in := got[1]; in.At != (fault.Span{Object: "a", Off: 1 << 20, Len: 100_000}) || in.Lost != 1000 ||
		!slices.Equal(in.Parts, []string{"t1", "t2"}) || in.Codes[0] != (check.CodeCount{Code: "x.page", N: 1000}) {
		t.Errorf("%+v", in)
	}
}

// A file with one hole is one incident; a file with two holes has three.
func TestLargeSpansJoinOneRun(t *testing.T) {
	file := bad("a", 0, 1<<30, "x.file", "p")
	hole := bad("a", 1<<20, 4096, "x.page", "p")
	other := bad("a", 1<<29, 4096, "x.page", "p")
	if got := check.Fold([]region.Finding{file, hole}); len(got) != 1 {
		t.Errorf("%d incidents, expected 1", len(got))
	}
	if got := check.Fold([]region.Finding{file, hole, other}); len(got) != 3 {
		t.Errorf("%d incidents, expected 3", len(got))
	}
}

// TestFoldAlike: the same warning about many files of one directory is one incident; about few, or files of other
// directories, it is not.
func TestFoldAlike(t *testing.T) {
	var all []region.Finding
	for i := range 40 {
		all = append(all, region.Finding{Code: "kudu.wal.missing", Severity: region.Warning,
			At: fault.Span{Object: fmt.Sprintf("wal/tablet-meta/%02d", i)}, Part: fmt.Sprintf("%02d", i),
			Table: fmt.Sprint("t", i)})
	}
	for i := range 3 {
		x := all[i]
		x.At.Object = fmt.Sprintf("other/tablet-meta/%02d", i)
		x.Part = "other" + x.Part
		all = append(all, x)
	}
	got := check.Fold(all)
	if len(got) != 4 || got[0].N != 40 || got[0].Tables[0] != "t0" {
		t.Errorf("%d incidents: %+v", len(got), got)
	}
}

// Every finding is in exactly one incident, and none is more severe than its incident.
func TestFoldLosesNothing(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var all []region.Finding
		for range r.IntN(60) {
			f := bad([]string{"", "a", "b"}[r.IntN(3)], r.Int64N(1<<16), r.Int64N(3000),
				[]string{"x.1", "x.2"}[r.IntN(2)], []string{"p", "q", ""}[r.IntN(3)])
			f.Severity = region.Severity(r.IntN(3))
			f.Lost = r.Int64N(5) - 1
			all = append(all, f)
		}
		seen := make([]bool, len(all))
		for _, in := range check.Fold(all) {
			n, codes := 0, 0
			for _, i := range in.Listed {
				if seen[i] || all[i].Severity > in.First.Severity {
					t.Fatalf("seed %d: finding %d is in two incidents, or graver than its incident", seed, i)
				}
				seen[i], n = true, n+1
			}
			for _, c := range in.Codes {
				codes += c.N
			}
			if n != in.N || codes != n {
				t.Fatalf("seed %d: %d findings, %d listed, %d by codes", seed, in.N, n, codes)
			}
		}
		if slices.Contains(seen, false) {
			t.Fatalf("seed %d: a finding is in no incident", seed)
		}
	}
}

// TestErrorsOutsideOfVerifiers: errors found while reading are reported like those of a verifier.
func TestErrorsOutsideOfVerifiers(t *testing.T) {
	r, all := reporter(t)
	span := fault.Span{Object: "f", Off: 110, Len: 5}
	for _, err := range []error{fault.Corruptf(span, "p", "it is odd"), fault.Limitf(span, "p", "too much")} {
		for _, code := range []string{"x.bad", "x.note"} {
			r.Blame(code, err, -1, -1)
			if got, want := codes.Of(code, err, "f"), (*all)[len(*all)-1]; got != want {
				t.Errorf("got\n%+v\nexpected\n%+v", got, want)
			}
		}
	}
	if f := codes.Of("x.bad", errors.New("no\ndisk"), "f"); f.Message != "no; disk" || f.At != (fault.Span{}) {
		t.Errorf("an error without a place is %+v", f)
	}
}

// TestReportersAreShared: several goroutines may report, each with its own scope.
func TestReportersAreShared(t *testing.T) {
	var all []region.Finding
	r := check.Collect(t.Context(), "f", codes, &all)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			mine := r.For(string(rune('a'+i)), "")
			for range 100 {
				mine.Report("x.bad", fault.Span{}, "", "bad")
				if mine.First("one") {
					mine.Report("x.note", fault.Span{}, "", "once")
				}
			}
		})
	}
	wg.Wait()
	if len(all) != 401 || r.Errors() != 400 {
		t.Errorf("%d findings, %d errors; expected 401 and 400", len(all), r.Errors())
	}
}
