// Package schema is the columns of a RedFile: trees of its own elements, Arrow schemas and their leaves, the texts in
// which the two are kept, and how the values of a leaf are decoded.
package schema
