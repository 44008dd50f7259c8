package format

import "context"

type glanceKey struct{}

// Glance returns a context for looking at a file to find out whether it is part of a table. What is opened with it does
// not become part of the table by that, as it does otherwise.
func Glance(ctx context.Context) context.Context { return context.WithValue(ctx, glanceKey{}, true) }

// Glancing reports whether a context comes from Glance.
func Glancing(ctx context.Context) bool { return ctx.Value(glanceKey{}) != nil }
