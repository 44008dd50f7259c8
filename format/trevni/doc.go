// Package trevni reads and writes Trevni files: columns in blocks, one file a row group.
package trevni
