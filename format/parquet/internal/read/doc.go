// Package read gives the pages of column chunks to who scans, and what statistics, page indexes and Bloom filters say
// of them.
package read
