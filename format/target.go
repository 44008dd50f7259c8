package format

// OpenOptions returns the options with which List opens the objects that it lists: the target's limits, and its options
// with these names, since the others need not be options of this format.
func (t Target) OpenOptions(names ...string) OpenOptions {
	o := OpenOptions{Limits: t.Limits, Opts: map[string]string{}}
	for _, name := range names {
		if v, ok := t.Opts[name]; ok {
			o.Opts[name] = v
		}
	}
	return o
}
