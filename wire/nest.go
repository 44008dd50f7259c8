package wire

// Tracing reports whether anybody is told the fields: who must work out more than it needs itself to tell them,
// asks first.
func (c *Cursor) Tracing() bool { return c.trace != nil }

// Indent moves the depth of the nodes that are told from now on: for structures whose size is known only at
// their end, so that there can be no Section for them.
func (c *Cursor) Indent(by int) { c.depth += by }
