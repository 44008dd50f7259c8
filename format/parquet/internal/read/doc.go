// Package read gives scans the pages of column chunks, and what statistics, page indexes and Bloom filters say about
// them.
package read
