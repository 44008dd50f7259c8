// Package carbonold lets CarbonData 1.6.1, the last release that reads formats 1 and 2, judge what stoa writes
// of these formats and of global dictionaries. interop/run carbon-old runs it; see interop/README.md.
package carbonold
