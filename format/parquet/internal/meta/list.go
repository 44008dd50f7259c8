package meta

import "strings"

// CutName splits off the name at the start of an item: either a name in double quotes, in which quotes are doubled, or
// everything before the first of the characters in until.
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
		if i < 0 { // the quote is never closed, so this is not a quoted name
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
