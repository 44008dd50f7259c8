package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// slower is by how much the new program must be slower, beyond doubt, to be told.
const slower = 1.03

// compare measures two builds of this program against each other, in pairs whose order changes, so that a busy machine
// meets both. Its error names what has become slower.
func compare(old, new string) error {
	args := []string{"-serve", "-rows", fmt.Sprint(*nRows), "-parts", *parts}
	a, err := startPeer("the old one", nil, old, args...)
	if err != nil {
		return err
	}
	defer a.end()
	b, err := startPeer("the new one", nil, new, args...)
	if err != nil {
		return err
	}
	defer b.end()
	fmt.Printf("%v\n\n| what | old | new | new/old | between | |\n|---|---|---|---|---|---|\n", look())
	var worse []string
	for _, name := range slices.Sorted(maps.Keys(a.offers)) {
		if _, both := b.offers[name]; !both || strings.HasPrefix(name, "limit") {
			continue
		}
		p, err := inPairs(a, b, name)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %s | %s | %.3f | %.3f and %.3f | %s |\n", name, unit(p.old), unit(p.new), p.ratio, p.low,
			p.high, p.verdict())
		if p.low > slower {
			worse = append(worse, name)
		}
	}
	fmt.Printf("\n%v\n", look())
	if worse != nil {
		return fmt.Errorf("slower by more than 3 %%: %s", strings.Join(worse, "; "))
	}
	return nil
}

// pairs is what the pairs of one measurement came to.
type pairs struct {
	old, new  float64 // the fastest runs
	ratio     float64 // the median of the pairs' ratios
	low, high float64 // between which the true median is, in 19 of 20 cases
}

func (p pairs) verdict() string {
	switch {
	case p.low > slower:
		return "slower"
	case p.high < 1/slower:
		return "faster"
	case p.high-p.low > 2*(slower-1):
		return "busy: not known"
	}
	return "same"
}

// inPairs measures until the ratio is known to 3 %, or the rounds are used up.
func inPairs(a, b *peer, name string) (p pairs, err error) {
	p.old, p.new = math.Inf(1), math.Inf(1)
	var ratios []float64
	for i := range 2 * *rounds {
		first, second := a, b
		if i%2 == 1 {
			first, second = b, a
		}
		x, err := first.measure(name)
		if err != nil {
			return p, err
		}
		y, err := second.measure(name)
		if err != nil {
			return p, err
		}
		if i%2 == 1 {
			x, y = y, x
		}
		p.old, p.new = min(p.old, x), min(p.new, y)
		if i == 0 {
			continue // the first runs of two processes are not alike
		}
		ratios = append(ratios, y/x)
		slices.Sort(ratios)
		n := len(ratios)
		p.ratio = (ratios[(n-1)/2] + ratios[n/2]) / 2
		off := max(0, int((float64(n)-1.96*math.Sqrt(float64(n)))/2)) // by the binomial distribution of ranks
		p.low, p.high = ratios[off], ratios[n-1-off]
		if n >= 10 && p.high-p.low < slower-1 {
			break
		}
	}
	return p, nil
}
