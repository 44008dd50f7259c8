package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

// count is a number and its noun.
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// maybe is thousands, or nothing when the number is not known.
func maybe(n int64) string {
	if n < 0 {
		return ""
	}
	return thousands(n)
}

// bytesText writes a number of bytes for people, in powers of 1000.
func bytesText(n int64) string {
	if n < 0 {
		return ""
	}
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, unit := float64(n), 0
	for f >= 999.5 && unit < 6 {
		f /= 1000
		unit++
	}
	digits := 1
	if f >= 99.95 {
		digits = 0
	}
	return strconv.FormatFloat(f, 'f', digits, 64) + " " + []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}[unit]
}

// seconds writes a duration for people.
func seconds(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d:%02d min", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d:%02d h", int(d.Hours()), int(d.Minutes())%60)
}

// indent puts two blanks a level in front.
func indent(depth int) string { return strings.Repeat("  ", depth) }

// displayWidth is how many cells of a terminal text takes.
func displayWidth(s string) int {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return runewidth.StringWidth(s)
		}
	}
	return len(s)
}
