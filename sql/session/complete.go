package session

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

var keywords = strings.Fields("select from where group by order having limit offset join left inner full cross " +
	"using on as and or not in is null like between case when then else end distinct union all except " +
	"intersect with create " +
	"table view copy to explain describe summarize count sum avg min max stoa stoa_ls stoa_stats stoa_verify " +
	"stoa_describe stoa_explain stoa_history stoa_diff")

var commands = []string{".tables", ".schema", ".mode", ".timing", ".help", ".quit"}

// complete completes the word before the cursor as far as it is unambiguous.
func (s *Session) complete(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	head := line[:pos]
	from := strings.LastIndexAny(head, " \t(,=") + 1
	candidates := s.words()
	switch i := strings.LastIndexByte(head, '\''); {
	case strings.HasPrefix(line, ".") && from == 0:
		candidates = commands
	case i >= 0 && strings.Count(head[:i], "'")%2 == 0:
		from = i + 1
		candidates = files(head[from:])
	}
	word := head[from:]
	var fit []string
	for _, c := range candidates {
		if len(c) >= len(word) && strings.EqualFold(c[:len(word)], word) {
			fit = append(fit, c)
		}
	}
	if word == "" || len(fit) == 0 {
		return line, pos, true
	}
	longest := fit[0]
	for _, c := range fit[1:] {
		for !strings.HasPrefix(c, longest) {
			longest = longest[:len(longest)-1]
		}
	}
	if len(longest) < len(word) {
		return line, pos, true
	}
	return head[:from] + longest + line[pos:], from + len(longest), true
}

// words returns the names of tables, of columns of tables that were read, and keywords.
func (s *Session) words() []string {
	out := slices.Concat(keywords, s.names)
	for _, t := range s.opened {
		for _, f := range t.Table.Schema().Fields() {
			out = append(out, f.Name)
		}
	}
	return out
}

// files returns the files that complete a path, directories with a trailing slash.
func files(begin string) (out []string) {
	dir, _ := filepath.Split(begin)
	all, err := os.ReadDir(filepath.Clean(dir + "."))
	if err != nil {
		return nil
	}
	for _, e := range all {
		name := dir + e.Name()
		if e.IsDir() {
			name += "/"
		}
		out = append(out, name)
	}
	return out
}
