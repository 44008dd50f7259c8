// Package page decodes blocks: values, lengths of arrays, levels; and cuts those of very many rows into pages. Kernels
// for varints and strings are here.
package page
