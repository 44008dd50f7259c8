// Package unpack is what RedFile's values are packed with beside the encodings of internal/enc: GROUP_VAR_INT of INT64,
// gzip, and the sizes that bare Snappy blocks say.
package unpack
