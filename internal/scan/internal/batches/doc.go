// Package batches reads row groups of readers that return finished batches: filter, projection, damage by rows.
package batches
