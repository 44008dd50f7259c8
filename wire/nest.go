package wire

// Tracing reports whether fields are traced, so that a parser can skip work that only a trace needs.
func (c *Cursor) Tracing() bool { return c.trace != nil }

// Indent changes the depth of the nodes that are traced from now on: for structures whose size is known only at their
// end, so that they cannot be a Section.
func (c *Cursor) Indent(by int) { c.depth += by }
