// Package plan works out what a scan reads and returns: outputs, filter columns, nested fields, the memory budget,
// which row groups are merged. It also records what a scan skips, and why.
package plan
