package session

import "strings"

// numbered gives each call of the function stoa a function of its own, and has texts after FROM and JOIN taken for
// addresses whatever they look like.
func numbered(text string, t []token) string {
	var b strings.Builder
	var inCall []bool // of each bracket that is open: it is that of a function whose arguments have a FROM
	at, n := 0, 0
	for i := 0; i+1 < len(t); i++ {
		switch {
		case isCall(t, i) && n < maxCalls:
			b.WriteString(text[at:t[i].from] + scanName(maxReferences+n))
			at = t[i].to
			n++
		case t[i].is("("):
			inCall = append(inCall, i > 0 && t[i-1].kind == word && froms[t[i-1].word])
		case t[i].is(")") && len(inCall) > 0:
			inCall = inCall[:len(inCall)-1]
		case t[i+1].kind != literal || text[t[i+1].from] != '\'':
		case t[i].is("join"), t[i].is("from") && !(i > 0 && t[i-1].is("distinct")) &&
			!(len(inCall) > 0 && inCall[len(inCall)-1]) && !(len(inCall) == 0 && (t[0].is("copy") || t[0].is("show"))):
			b.WriteString(text[at:t[i+1].from] + quoteName(ours+t[i+1].word+oursEnd))
			at = t[i+1].to
		}
	}
	return b.String() + text[at:]
}

// froms are the functions of SQL in whose brackets FROM stands between arguments.
var froms = map[string]bool{"extract": true, "trim": true, "substring": true, "overlay": true}

// isCall reports whether token i is the function stoa, as a table, and not a name that is given: that of a table, a
// view, or a query after WITH, with the names of its columns in brackets.
func isCall(t []token, i int) bool {
	if i == 0 || i+1 == len(t) || !t[i].is("stoa") || !t[i+1].is("(") {
		return false
	}
	p := t[i-1]
	switch {
	case p.is("from"), p.is("join"), p.is("lateral"), p.is("("):
		return true
	case !p.is(","):
		return false
	}
	depth := 0
	for k := i + 1; k < len(t); k++ {
		switch {
		case t[k].is("("):
			depth++
		case t[k].is(")"):
			depth--
		}
		if depth == 0 { // WITH a AS (…), stoa(x) AS [[NOT] MATERIALIZED] (…)
			for k++; k < len(t) && (t[k].is("as") || t[k].is("not") || t[k].is("materialized")); k++ {
			}
			return k >= len(t) || !t[k].is("(") || !t[k-1].is("as") && !t[k-1].is("materialized")
		}
	}
	return true
}
