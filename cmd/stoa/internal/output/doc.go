// Package output has the flags for the destination and form of results: tables, JSON, CSV, files.
package output
