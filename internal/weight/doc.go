// Package weight has only a test: how large the programs may be.
package weight
