// Package page decodes blocks: values, lengths of arrays and levels. Runs and nulls take no bytes, so a block may have
// any number of rows; blocks with very many are split into pages. Nullable columns of Avro's dialect are arrays of no
// or one value (avro_optional.go); those of the others have levels (levels.go). Kernels for varints and strings are
// here.
package page
