// Package emit collects the rows that the windows leave over, cuts them into batches, and counts against the limit.
package emit
