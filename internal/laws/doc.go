// Package laws holds the library to what it promises over all formats: that rows are conserved, that damage stays where
// it is, that all verbs give one verdict, that outputs prove themselves, that budgets govern opening, too (see "The
// laws" in docs/architecture.md), and what else is about the library as a whole. There are only tests in it, which see
// of package stoa what its users see, and run in the module's root, to which the paths in them count.
package laws
