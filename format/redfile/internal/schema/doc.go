// Package schema has the schemas of RedFiles: trees of their own elements, Arrow schemas and their leaves, the texts in
// which they are stored, and how the values of a leaf are decoded.
package schema
