// Package carbonold has CarbonData 1.6.1, the last release that reads formats 1 and 2, read what stoa writes
// in these formats, and stoa's global dictionaries. interop/run carbon-old runs it; see interop/README.md.
package carbonold
