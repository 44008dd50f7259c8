// Package read provides scans with the pages of column chunks, and with the bounds from statistics, page indexes and
// Bloom filters.
package read
