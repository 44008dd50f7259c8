// Package plan works out what a scan reads and what it gives: outputs, filter columns, nested fields, the budget of
// memory, which row groups are merged; and it keeps the trace of what a scan passes over, and why.
package plan
