package about

// Topic returns the page of help with this name that is not about a verb.
func Topic(name string) (text string, ok bool) {
	if name != Topics()[0] {
		return "", false
	}
	return texts()[1], true
}

// Topics returns the names of the pages of help that are not about a verb.
func Topics() []string { return []string{"predicates"} }
