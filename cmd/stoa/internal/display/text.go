package display

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

// Count returns a number and its noun.
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(n) + " " + noun + "s"
}

// Thousands formats 1234567 as 1,234,567.
func Thousands(n int64) string {
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

// Maybe is Thousands, or "" if the number is not known.
func Maybe(n int64) string {
	if n < 0 {
		return ""
	}
	return Thousands(n)
}

// BytesText formats a number of bytes for people, in powers of 1000.
func BytesText(n int64) string {
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

// Seconds formats a duration for people.
func Seconds(d time.Duration) string {
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

// Indent returns two blanks per level.
func Indent(depth int) string { return strings.Repeat("  ", depth) }

// DisplayWidth returns how many terminal cells a text takes.
func DisplayWidth(s string) int {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return runewidth.StringWidth(s)
		}
	}
	return len(s)
}

// ShellWord returns s, quoted if a shell would not read it as one word.
func ShellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:@,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
