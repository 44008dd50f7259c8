package serve

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"stoa/region"
)

// Role is what the bytes of a structure are for.
type Role string

// The roles, in the order of the legend.
const (
	Header     Role = "header"
	Footer     Role = "footer"
	Schema     Role = "metadata"
	Index      Role = "index"
	Dictionary Role = "dictionary"
	Page       Role = "page"
	Nulls      Role = "nulls"
	Levels     Role = "levels"
	Filter     Role = "filter"
	Log        Role = "log"
	Checksum   Role = "checksum"
	Hole       Role = "hole"
	Gap        Role = "gap"
	Other      Role = "other"
)

// roleWords say the role of a structure by its name, in the words of the formats' documents; the first that matches
// counts. A structure without a word of its own has the role of the one it is part of.
var roleWords = []struct {
	words *regexp.Regexp
	role  Role
}{
	{regexp.MustCompile(`(?i)bloom`), Filter},
	{regexp.MustCompile(`(?i)(^|[._-])(checksum|crc32?|length_checksum)$`), Checksum},
	{regexp.MustCompile(`(?i)^(posidx|validx)|index|^BlockIndex|_info_list`), Index},
	{regexp.MustCompile(`(?i)dictionary|^dict$|^dictmeta$|^chunk\[`), Dictionary},
	{regexp.MustCompile(`(?i)^nulls?$|null_bitmap|validity|presence`), Nulls},
	{regexp.MustCompile(`(?i)levels`), Levels},
	{regexp.MustCompile(`(?i)^(block|page|blocklet)\[`), Page},
	{regexp.MustCompile(`(?i)^(entry|batch|segment)\[`), Log},
	{regexp.MustCompile(`(?i)^(file)?footer`), Footer},
	{regexp.MustCompile(`(?i)^((file|supplementary )?header|magic)`), Header},
	{regexp.MustCompile(`(?i)metadata|meta_data|schema|^pair\[|descriptors?\b|^column-start|^record\[`), Schema},
}

// roleOf returns the role of a node in a structure of role above.
func roleOf(n region.Node, above Role) Role {
	switch n.Kind {
	case region.Gap:
		return Gap
	case region.Pad, region.Dead:
		return Hole
	}
	if strings.HasPrefix(n.Value, "DICTIONARY_PAGE") {
		return Dictionary
	}
	for _, w := range roleWords {
		if w.words.MatchString(n.Name) {
			if above == Page && (w.role == Header || w.role == Footer || w.role == Schema) {
				return Page // a page's own header
			}
			return w.role
		}
	}
	return above
}

var (
	groupColumn = regexp.MustCompile(`^row_groups\[\d+\]\.(?:columns\[\d+\]|(.+?)` +
		`(?:\.(?:meta_data|column_index|offset_index|bloom_filter.*))?)$`)
	trvColumn = regexp.MustCompile(`^column\[\d+\]$`)
	pagesOf   = regexp.MustCompile(`, \d+ pages?$`)
	fromRow   = regexp.MustCompile(`^from row (\d+)(?:, (\d+) rows?)?`)
)

// columnOf returns the column that a node is about, by the words of the formats; above is that of its parent, whose
// name parent is.
func columnOf(n region.Node, parent, above string) string {
	if m := groupColumn.FindStringSubmatch(n.Name); m != nil {
		if m[1] != "" {
			return m[1]
		}
		name, _, _ := strings.Cut(n.Value, ",")
		return name
	}
	if trvColumn.MatchString(n.Name) {
		if name, _, ok := strings.Cut(n.Value, ","); ok {
			if text, err := strconv.Unquote(name); err == nil {
				return text
			}
			return name
		}
	}
	if strings.HasPrefix(parent, "blocklet[") && pagesOf.MatchString(n.Value) {
		return n.Name
	}
	return above
}

// codecOf returns the codec of a node's data, which what it is part of may name; structures about data have none.
func codecOf(n region.Node, role Role, above string) string {
	switch role {
	case Page, Dictionary, Nulls, Levels, Other:
		return cmp.Or(n.Codec, above)
	}
	return n.Codec
}

// rowsOf returns the first row of a node and how many it has; -1 for what is not said.
func rowsOf(n region.Node) (from, count int64) {
	if n.Rows != [2]int64{} {
		return n.Rows[0], n.Rows[1] - n.Rows[0]
	}
	from, count = -1, -1
	if m := fromRow.FindStringSubmatch(n.Value); m != nil {
		from, _ = strconv.ParseInt(m[1], 10, 64)
		if m[2] != "" {
			count, _ = strconv.ParseInt(m[2], 10, 64)
		}
	}
	return from, count
}
