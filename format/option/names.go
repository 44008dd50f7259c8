package option

import "strings"

// Split splits a list of names. A name that begins with a quotation mark ends with one, and a doubled quotation mark
// inside represents a single one, so that names may contain commas. If v is not a list, wanted describes a valid one.
func Split(v string) (names []string, wanted string) {
	for {
		name, rest, ok := Unquote(v, ",")
		if !ok {
			return nil, `names with commas between them, as a,b or "a,b",c,`
		}
		names = append(names, name)
		rest, more := strings.CutPrefix(rest, ",")
		if !more {
			return names, ""
		}
		v = rest
	}
}

// Unquote reads the name at the beginning of v, either plain, up to the first of the characters in ends, or in
// quotation marks. rest begins with that character, or is empty. Blanks around the name are skipped.
func Unquote(v, ends string) (name, rest string, ok bool) {
	v = strings.TrimLeft(v, " ")
	if !strings.HasPrefix(v, `"`) {
		i := strings.IndexAny(v, ends)
		if i < 0 {
			i = len(v)
		}
		return strings.TrimSpace(v[:i]), v[i:], true
	}
	var b strings.Builder
	for i := 1; i < len(v); i++ {
		if v[i] != '"' {
			b.WriteByte(v[i])
			continue
		}
		if i+1 < len(v) && v[i+1] == '"' {
			b.WriteByte('"')
			i++
			continue
		}
		rest := strings.TrimLeft(v[i+1:], " ")
		return b.String(), rest, rest == "" || strings.IndexByte(ends, rest[0]) >= 0
	}
	return "", "", false
}

// Join returns the list that Split splits into names.
func Join(names []string) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = Quote(name)
	}
	return strings.Join(out, ",")
}

// Quote returns a name as it is written in a list, quoted if necessary. special are further characters that require
// quoting.
func Quote(name string, special ...string) string {
	if name != "" && strings.TrimSpace(name) == name && !strings.ContainsAny(name, `",`+strings.Join(special, "")) {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
