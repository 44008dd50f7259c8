// Package page decodes blocks: values, lengths of arrays and levels. It splits blocks of very many rows into pages:
// runs and nulls take no bytes, so a block may have any number of them. Kernels for varints and strings are here.
package page
