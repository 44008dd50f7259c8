package main

import (
	"fmt"
	"math"
)

// The ten columns of the benchmark, as Load.java writes them.
var columns = []string{"id", "ts", "host", "metric", "val", "cnt", "flag", "price", "url", "tag"}

func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// expected returns the columns' checksums by the formula.
func expected(rows int) []sum {
	s := make([]sum, len(columns))
	null := func(c int, is bool) bool {
		s[c].Rows++
		if is {
			s[c].Nulls++
		}
		return is
	}
	text := func(c int, v string) { s[c].text([]byte(v)) }
	for r := range int64(rows) {
		h := mix(uint64(r))
		null(0, false)
		s[0].Total += uint64(r)*3 + h%3
		null(1, false)
		s[1].Total += 1_700_000_000_000_000 + uint64(r)*1000 + h>>3%997
		null(2, false)
		text(2, fmt.Sprintf("host-%d.example.org", h>>8%200))
		if !null(3, h&15 == 0) {
			text(3, fmt.Sprintf("metric.%d", h>>16%50))
		}
		if !null(4, h&7 == 1) {
			s[4].Total += math.Float64bits(float64(int64(h)>>20) / 65536)
		}
		null(5, false)
		s[5].Total += uint64(r / 100 % 7)
		if !null(6, h&31 == 2) {
			s[6].Total += uint64(r / 64 & 1)
		}
		if !null(7, h&63 == 3) {
			s[7].Total += uint64((int64(h) >> 12) % 1_000_000_000)
		}
		if !null(8, h&3 == 0) {
			text(8, fmt.Sprintf("https://example.org/path/%x?q=%d", mix(h), r%1000))
		}
		null(9, false)
		text(9, fmt.Sprintf("tag/%09d", r))
	}
	return s
}
