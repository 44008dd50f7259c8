// Package page decodes blocks: values, lengths of arrays, levels; and cuts those of very many rows into pages, since
// a run or a null takes no bytes and a block may have any number of them. Kernels for varints and strings are here.
package page
