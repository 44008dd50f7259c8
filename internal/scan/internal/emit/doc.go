// Package emit collects the rows that remain in the windows, cuts them into batches, and enforces the limit.
package emit
