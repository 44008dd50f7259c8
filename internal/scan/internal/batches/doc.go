// Package batches reads row groups of readers that give finished batches: filter, projection, damage by rows.
package batches
