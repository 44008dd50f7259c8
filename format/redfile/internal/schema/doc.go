// Package schema handles the schemas of RedFiles: trees of schema elements, Arrow schemas and their leaves, the texts
// in which they are stored, and the decoding of a leaf's values.
package schema
