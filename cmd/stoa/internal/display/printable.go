package display

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes text from a file safe for a terminal: control characters, which could move the cursor or worse, and
// bytes that are not UTF-8 are shown as escapes. Line ends are kept.
func Printable(s string) string { return escape(s, true) }

// OneLine is Printable with line ends escaped, too.
func OneLine(s string) string { return escape(s, false) }

func escape(s string, lines bool) string {
	if clean(s, lines) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n' && !lines:
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r != '\n' && hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// hidden reports whether r is not a visible character: controls, and marks that change the direction of text.
func hidden(r rune) bool {
	return unicode.IsControl(r) || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069 || r == 0xFEFF
}

func clean(s string, lines bool) bool {
	ascii := true
	for i := range len(s) {
		if c := s[i]; (c < ' ' || c == 0x7F) && !(lines && c == '\n') {
			return false
		} else if c >= utf8.RuneSelf {
			ascii = false
		}
	}
	if ascii {
		return true
	}
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return r != '\n' && hidden(r) }) < 0
}
