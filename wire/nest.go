package wire

// Tracing reports whether fields are traced: a parser asks before it works out what only a trace needs.
func (c *Cursor) Tracing() bool { return c.trace != nil }

// Indent moves the depth of the nodes that are traced from now on: for structures whose size is known only at
// their end, so that there can be no Section for them.
func (c *Cursor) Indent(by int) { c.depth += by }
