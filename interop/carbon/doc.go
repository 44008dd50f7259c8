// Package carbon lets the real CarbonData judge what stoa reads and writes: its SDK writes fresh tables, of which stoa
// must read what the SDK's own row reader reads, and the row reader reads what stoa writes. interop/run carbon runs it;
// see interop/README.md.
package carbon
