// Package carbonlife has tables live: the real CarbonData, under Spark in one process that lives as long as they do,
// and stoa change them in turn, by operations drawn from a seed. After each operation both read all rows, which must
// be those of a model. interop/run carbon-life runs it; see interop/README.md.
package carbonlife
