// Package carbon lets the real CarbonData judge what stoa reads: its SDK writes fresh tables, and what its own
// row reader reads of them must be what stoa reads. interop/run carbon runs it; see interop/README.md.
package carbon
