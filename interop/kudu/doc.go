// Package kudu has no code of its own: its tests have the real Apache Kudu read the CFiles, bloom files, ad-hoc
// indexes and delta files that stoa writes. See ../README.md.
//
// Without the build tag the tests only check the harness itself against dumps that Kudu printed (testdata, and the
// whole corpus if STOA_CORPUS names it). With the tag "interop" they fetch and start the real system.
package kudu
