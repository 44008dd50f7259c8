// Package recovery finds the row groups of a file whose footer is lost.
package recovery
