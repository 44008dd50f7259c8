// Package laws tests what the library promises for all formats: rows are conserved, damage stays local, all verbs agree
// in their verdict, outputs prove themselves, and budgets also govern opening (see "The laws" in docs/architecture.md).
// It also tests other properties of the library as a whole. It has only tests, which use the exported API of package
// stoa and run in the module's root, to which their paths are relative.
package laws
