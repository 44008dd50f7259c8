// Package carbon tests stoa against the real CarbonData: stoa must read the same rows from tables that the SDK writes
// as the SDK's own row reader, and the row reader must read what stoa writes. interop/run carbon runs it; see
// interop/README.md.
package carbon
