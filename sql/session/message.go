package session

import (
	"regexp"
	"strings"
)

// written are the names that stand in a statement where an address or the function stoa stood. DuckDB cuts long lines.
var written = regexp.MustCompile(`"` + ours + `(?:[^"]|"")*(?:` + oursEnd + `"|\.\.\.$)|(?i:\bstoa_table_\d+\b)`)

// asWritten gives an error of DuckDB's the words of the statement as it was written. Where a line of it is quoted, and
// the line below has a mark, the mark stays under the same word.
func asWritten(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\t", "  "), "\n")
	for i, line := range lines {
		mark := -1
		if i+1 < len(lines) && strings.HasPrefix(line, "LINE ") {
			mark = strings.IndexByte(lines[i+1], '^')
		}
		if mark < 0 || mark > len([]rune(line)) || strings.TrimSpace(lines[i+1]) != "^" {
			lines[i] = restored(line)
			continue
		}
		before := restored(string([]rune(line)[:mark]))
		lines[i] = before + restored(string([]rune(line)[mark:]))
		lines[i+1] = strings.Repeat(" ", len([]rune(before))) + "^"
	}
	return strings.Join(lines, "\n")
}

func restored(text string) string {
	return written.ReplaceAllStringFunc(text, func(name string) string {
		if name[0] != '"' {
			return "stoa"
		}
		name, whole := strings.CutSuffix(strings.TrimPrefix(name, `"`+ours), oursEnd+`"`)
		name = quote(strings.ReplaceAll(name, `""`, `"`))
		if !whole {
			name = strings.TrimSuffix(name, "'")
		}
		return name
	})
}
