package syntax

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// JoinPath joins the names of a column's fields, outermost first, with points to a path. A name that is empty or
// contains a point or a quotation mark is quoted, with quotation marks in it doubled.
func JoinPath(names ...string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteByte('.')
		}
		if n == "" || strings.ContainsAny(n, `."`) {
			n = quoteName(n)
		}
		b.WriteString(n)
	}
	return b.String()
}

// SplitPath is the inverse of JoinPath. Every text is a valid path: an unclosed quotation mark is closed by the end.
func SplitPath(path string) []string {
	var names []string
	for {
		var n string
		if strings.HasPrefix(path, `"`) {
			n, path = unquoteName(path)
		} else {
			i := strings.IndexByte(path, '.')
			if i < 0 {
				i = len(path)
			}
			n, path = path[:i], path[i:]
		}
		names = append(names, n)
		if path == "" {
			return names
		}
		path = strings.TrimPrefix(path, ".")
	}
}

func quoteName(n string) string { return `"` + strings.ReplaceAll(n, `"`, `""`) + `"` }

// unquoteName parses the quoted name at the start of s and returns the rest.
func unquoteName(s string) (name, rest string) {
	var b strings.Builder
	for s = s[1:]; ; {
		i := strings.IndexByte(s, '"')
		if i < 0 {
			b.WriteString(s)
			return b.String(), ""
		}
		b.WriteString(s[:i])
		if s = s[i+1:]; !strings.HasPrefix(s, `"`) {
			return b.String(), s
		}
		b.WriteByte('"')
		s = s[1:]
	}
}

// keywords have to be quoted as the first name of a column.
var keywords = map[string]bool{
	"and": true, "or": true, "not": true, "in": true, "between": true,
	"is": true, "null": true, "like": true, "true": true, "false": true,
}

// PrintPath returns a path in the syntax of Parse.
func PrintPath(path string) string {
	names := SplitPath(path)
	for i, n := range names {
		if !isPlainName(n) || i == 0 && keywords[strings.ToLower(n)] {
			names[i] = quoteName(n)
		}
	}
	return strings.Join(names, ".")
}

// isPlainName reports whether n is a name that needs no quotation marks.
func isPlainName(n string) bool {
	for i, r := range n {
		if !isNameRune(r, i == 0) {
			return false
		}
	}
	return n != "" && utf8.ValidString(n)
}

func isNameRune(r rune, first bool) bool {
	return r == '_' || unicode.IsLetter(r) || !first && unicode.IsDigit(r)
}
