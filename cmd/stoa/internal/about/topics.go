package about

import (
	_ "embed" // the texts
	"maps"
	"slices"
)

//go:embed predicates.txt
var predicates string

// topics are the pages of help that are not about a verb.
var topics = map[string]string{"predicates": predicates}

// Topic returns the page of help with this name.
func Topic(name string) (text string, ok bool) {
	text, ok = topics[name]
	return text, ok
}

// Topics returns the names of the pages of help that are not about a verb.
func Topics() []string { return slices.Sorted(maps.Keys(topics)) }
