package meta

import "strings"

// SplitList splits an option's value at its commas, except inside double quotes.
func SplitList(v string) (items []string) {
	from, in := 0, false
	for i := range len(v) {
		switch {
		case v[i] == '"':
			in = !in
		case v[i] == ',' && !in:
			items = append(items, strings.TrimSpace(v[from:i]))
			from = i + 1
		}
	}
	return append(items, strings.TrimSpace(v[from:]))
}

// CutName takes the name at the start of an item: one in double quotes, with those inside doubled, or else what stands
// before the first of some characters.
func CutName(item, until string) (name, rest string) {
	if !strings.HasPrefix(item, `"`) {
		if i := strings.IndexAny(item, until); i >= 0 {
			return item[:i], item[i:]
		}
		return item, ""
	}
	var b strings.Builder
	for s := item[1:]; ; {
		i := strings.IndexByte(s, '"')
		if i < 0 { // it is never closed, so it is no quoted name
			return item, ""
		}
		b.WriteString(s[:i])
		if s = s[i+1:]; !strings.HasPrefix(s, `"`) {
			return b.String(), s
		}
		b.WriteByte('"')
		s = s[1:]
	}
}

// QuoteName is a name as CutName takes it from a list, or from a line of a file of keys.
func QuoteName(name, until string) string {
	if name == "" || strings.HasPrefix(name, `"`) || strings.TrimSpace(name) != name ||
		strings.ContainsAny(name, `,"`+until) {
		return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	}
	return name
}

// Names are the items of a list that are names and nothing else.
func Names(v string) (names []string) {
	for _, item := range SplitList(v) {
		name, rest := CutName(item, "")
		names = append(names, name+rest)
	}
	return names
}
